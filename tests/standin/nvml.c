/* A libnvidia-ml.so.1 that answers from a dgxcheck recording; see answers.h for the table and nvml.py for its use. */
#include "answers.h"

#define GPU(symbol_, function_, gpu, ...) \
    {.symbol = symbol_, .function = function_, .devices = 1, .device = {gpu}, __VA_ARGS__}
#define OWN(function_, gpu, ...) GPU(#function_, #function_, gpu, __VA_ARGS__)
#define HOST(symbol_, function_, ...) {.symbol = symbol_, .function = function_, __VA_ARGS__}
#define NONE .numbers = 0
#define NUMBERS(count, ...) .numbers = count, .number = {__VA_ARGS__}
#define ASK(...)                                    \
    struct call call = __VA_ARGS__;                 \
    char *fields;                                   \
    int code = ask(&call, &fields);                 \
    if (code)                                       \
        return code

/* ---- library ---- */

static int init(const char *symbol)
{
    struct call call = HOST(symbol, "nvmlInit", NONE);
    char question[MAX_QUESTION], *fields;
    const char *path = getenv("NVML_STANDIN_CALLS");
    if (log_file < 0 && path)
        log_file = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    int code = load_faults();
    if (!code)
        code = enter(&call, question, &fields);
    if (!code)
        code = users ? SUCCESS : load_answers();
    if (!code)
        code = look_up(&call, question, &fields);
    users += code == SUCCESS;
    return code;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return init("nvmlInitWithFlags"); }
int nvmlInit_v2(void) { return init("nvmlInit_v2"); }

int nvmlShutdown(void)
{
    struct call call = HOST("nvmlShutdown", "nvmlShutdown", NONE);
    char question[MAX_QUESTION], *fields;
    if (!users)
        return UNINITIALIZED;
    int code = enter(&call, question, &fields);
    users -= code == SUCCESS;
    return code;
}

const char *nvmlErrorString(int code)
{
    static const char *const names[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded",
        "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found",
        "Corrupted infoROM", "GPU is lost", "GPU requires reset", "The operating system has blocked the request.",
        "Driver/library version mismatch",
    };
    return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : "Unknown Error";
}

/* ---- devices ---- */

int nvmlDeviceGetCount_v2(unsigned *count)
{
    ASK(HOST("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", NONE));
    return fill32(fields, &count, 1);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *gpu)
{
    struct call call = HOST("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", NUMBERS(1, index),
                            .index = index < MAX_GPUS ? UINT64_C(1) << index : 0);
    char *fields;
    int code = ask(&call, &fields);
    if (code)       /* an index beyond the recorded GPUs is a wrong argument */
        return code == NOT_SUPPORTED && (index >= MAX_GPUS || !gpus[index].bdf[0]) ? INVALID_ARGUMENT : code;
    *gpu = &gpus[has("has one GPU") ? 0 : has("turns GPUs round") && index < 2 ? 1 - index : index];
    return gpus[index].bdf[0] ? SUCCESS : UNKNOWN;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, Device *gpu)
{
    struct call call = HOST("nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId", NONE);
    char question[MAX_QUESTION], bdf[32], *fields;
    unsigned part[4], i = 0;
    if (!users)
        return UNINITIALIZED;
    if (!spell_bdf(bus_id, part, bdf, sizeof bdf))
        return INVALID_ARGUMENT;
    call.text = bdf;
    while (i < MAX_GPUS && strcmp(gpus[i].bdf, bdf))
        i++;
    call.index = i < MAX_GPUS ? UINT64_C(1) << i : 0;
    int code = enter(&call, question, &fields);
    if (code)
        return code;
    if (i == MAX_GPUS)
        return NOT_FOUND;
    *gpu = &gpus[i];
    return SUCCESS;
}

/* ---- text ---- */

#define SYSTEM_TEXT(name) \
    int name(char *out, unsigned size) { ASK(HOST(#name, #name, NONE)); return fill_text(fields, out, size); }
#define TEXT(name) \
    int name(Device gpu, char *out, unsigned size) { ASK(OWN(name, gpu, NONE)); return fill_text(fields, out, size); }

SYSTEM_TEXT(nvmlSystemGetDriverVersion)
SYSTEM_TEXT(nvmlSystemGetNVMLVersion)
TEXT(nvmlDeviceGetName) TEXT(nvmlDeviceGetUUID) TEXT(nvmlDeviceGetSerial) TEXT(nvmlDeviceGetVbiosVersion)
TEXT(nvmlDeviceGetBoardPartNumber) TEXT(nvmlDeviceGetInforomImageVersion)

int nvmlDeviceGetInforomVersion(Device gpu, unsigned object, char *out, unsigned size)
{
    ASK(OWN(nvmlDeviceGetInforomVersion, gpu, NUMBERS(1, object)));
    return fill_text(fields, out, size);
}

int nvmlSystemGetProcessName(unsigned pid, char *out, unsigned size)
{
    ASK(HOST("nvmlSystemGetProcessName", "nvmlSystemGetProcessName", NUMBERS(1, pid)));
    return fill_text(fields, out, size);
}

/* ---- numbers ---- */

int nvmlSystemGetCudaDriverVersion(unsigned *out)
{
    ASK(HOST("nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion", NONE));
    return fill32(fields, &out, 1);
}

#define UINT(name) \
    int name(Device gpu, unsigned *out) { ASK(OWN(name, gpu, NONE)); return fill32(fields, &out, 1); }
#define UINT_OF(name) \
    int name(Device gpu, unsigned a, unsigned *out) \
    { ASK(OWN(name, gpu, NUMBERS(1, a))); return fill32(fields, &out, 1); }
#define UINT_PAIR(name) \
    int name(Device gpu, unsigned *a, unsigned *b) \
    { ASK(OWN(name, gpu, NONE)); return fill32(fields, (unsigned *[]){a, b}, 2); }
#define WIDE_OF(name) \
    int name(Device gpu, unsigned a, unsigned b, uint64_t *out) \
    { ASK(OWN(name, gpu, NUMBERS(2, a, b))); return fill64(fields, out, 1); }
#define WIDE_STRUCT(name, count) /* a struct of so many 64-bit fields */ \
    int name(Device gpu, uint64_t *out) { ASK(OWN(name, gpu, NONE)); return fill64(fields, out, count); }

UINT(nvmlDeviceGetMinorNumber) UINT(nvmlDeviceGetNumaNodeId) UINT(nvmlDeviceGetBrand) UINT(nvmlDeviceGetArchitecture)
UINT(nvmlDeviceGetBoardId) UINT(nvmlDeviceGetMultiGpuBoard) UINT(nvmlDeviceGetCurrPcieLinkGeneration)
UINT(nvmlDeviceGetCurrPcieLinkWidth) UINT(nvmlDeviceGetMaxPcieLinkGeneration) UINT(nvmlDeviceGetMaxPcieLinkWidth)
UINT(nvmlDeviceGetGpuMaxPcieLinkGeneration) UINT(nvmlDeviceGetPcieReplayCounter) UINT(nvmlDeviceGetPerformanceState)
UINT(nvmlDeviceGetPowerUsage) UINT(nvmlDeviceGetEnforcedPowerLimit) UINT(nvmlDeviceGetPowerManagementLimit)
UINT(nvmlDeviceGetPowerManagementDefaultLimit) UINT(nvmlDeviceGetFanSpeed) UINT(nvmlDeviceGetPersistenceMode)
UINT(nvmlDeviceGetComputeMode) UINT(nvmlDeviceGetDisplayMode) UINT(nvmlDeviceGetDisplayActive)
UINT(nvmlDeviceGetRetiredPagesPendingStatus) UINT(nvmlDeviceGetModuleId) UINT(nvmlDeviceGetVirtualizationMode)
UINT_OF(nvmlDeviceGetClockInfo) UINT_OF(nvmlDeviceGetMaxClockInfo) UINT_OF(nvmlDeviceGetApplicationsClock)
UINT_OF(nvmlDeviceGetDefaultApplicationsClock) UINT_OF(nvmlDeviceGetMaxCustomerBoostClock)
UINT_OF(nvmlDeviceGetTemperature) UINT_OF(nvmlDeviceGetTemperatureThreshold) UINT_OF(nvmlDeviceGetNvLinkState)
UINT_OF(nvmlDeviceGetNvLinkVersion) UINT_OF(nvmlDeviceGetNvLinkRemoteDeviceType)
UINT_PAIR(nvmlDeviceGetEccMode) UINT_PAIR(nvmlDeviceGetGpuOperationMode) UINT_PAIR(nvmlDeviceGetMigMode)
UINT_PAIR(nvmlDeviceGetAutoBoostedClocksEnabled) UINT_PAIR(nvmlDeviceGetPowerManagementLimitConstraints)
UINT_PAIR(nvmlDeviceGetCudaComputeCapability)
WIDE_OF(nvmlDeviceGetTotalEccErrors) WIDE_OF(nvmlDeviceGetNvLinkErrorCounter)
WIDE_STRUCT(nvmlDeviceGetBAR1MemoryInfo, 3)
WIDE_STRUCT(nvmlDeviceGetCurrentClocksEventReasons, 1) WIDE_STRUCT(nvmlDeviceGetTotalEnergyConsumption, 1)

int nvmlDeviceGetCurrentClocksThrottleReasons(Device gpu, uint64_t *out)
{
    ASK(GPU("nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetCurrentClocksEventReasons", gpu, NONE));
    return fill64(fields, out, 1);
}

int nvmlDeviceGetMemoryErrorCounter(Device gpu, unsigned type, unsigned counter, unsigned location, uint64_t *out)
{
    ASK(OWN(nvmlDeviceGetMemoryErrorCounter, gpu,
            NUMBERS(3, type, counter, location)));
    return fill64(fields, out, 1);
}

int nvmlDeviceGetNvLinkCapability(Device gpu, unsigned link, unsigned capability, unsigned *out)
{
    ASK(OWN(nvmlDeviceGetNvLinkCapability, gpu, NUMBERS(2, link, capability)));
    return fill32(fields, &out, 1);
}

int nvmlDeviceGetTopologyCommonAncestor(Device a, Device b, unsigned *out)
{
    ASK({"nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetTopologyCommonAncestor", .devices = 2, .device = {a, b}});
    return fill32(fields, &out, 1);
}

int nvmlDeviceGetP2PStatus(Device a, Device b, unsigned kind, unsigned *out)
{
    ASK({"nvmlDeviceGetP2PStatus", "nvmlDeviceGetP2PStatus", .devices = 2, .device = {a, b}, NUMBERS(1, kind)});
    return fill32(fields, &out, 1);
}

int nvmlDeviceGetRemappedRows(Device gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failure)
{
    ASK(OWN(nvmlDeviceGetRemappedRows, gpu, NONE));
    return fill32(fields, (unsigned *[]){corrected, uncorrected, pending, failure}, 4);
}

int nvmlDeviceGetUtilizationRates(Device gpu, unsigned out[2])
{
    ASK(OWN(nvmlDeviceGetUtilizationRates, gpu, NONE));
    return fill32(fields, (unsigned *[]){out, out + 1}, 2);
}

int nvmlDeviceGetRowRemapperHistogram(Device gpu, unsigned out[5])
{
    ASK(OWN(nvmlDeviceGetRowRemapperHistogram, gpu, NONE));
    return fill32(fields, (unsigned *[]){out, out + 1, out + 2, out + 3, out + 4}, 5);
}

struct sram_v1 { unsigned version; uint64_t counts[11]; unsigned exceeded; };

int nvmlDeviceGetSramEccErrorStatus(Device gpu, struct sram_v1 *out)
{
    if (out->version != 0x01000068)
        return VERSION_MISMATCH;
    ASK(OWN(nvmlDeviceGetSramEccErrorStatus, gpu, NONE));
    uint64_t value[8];
    if (fill64(fields, value, 8)) {     /* a recording from before the counts were asked has the flag alone */
        memset(out->counts, 0, sizeof out->counts);
        return fill32(fields, (unsigned *[]){&out->exceeded}, 1);
    }
    out->exceeded = (unsigned)value[0];
    memcpy(out->counts, value + 1, 2 * sizeof *value);
    memcpy(out->counts + 6, value + 3, 5 * sizeof *value);
    return SUCCESS;
}

int nvmlDeviceValidateInforom(Device gpu)
{
    unsigned valid, *out = &valid;
    ASK(OWN(nvmlDeviceValidateInforom, gpu, NONE));
    return fill32(fields, &out, 1);
}

int nvmlDeviceGetGspFirmwareVersion(Device gpu, char *out)
{
    ASK(OWN(nvmlDeviceGetGspFirmwareVersion, gpu, NONE));
    return fill_text(fields, out, 64);
}

struct platform_v2 { unsigned version; char guid[16], chassis[16]; unsigned char slot, tray, host, peer, module; };

int nvmlDeviceGetPlatformInfo(Device gpu, struct platform_v2 *out)
{
    uint64_t value[4];
    if (out->version != 0x0200002c)
        return VERSION_MISMATCH;
    ASK(OWN(nvmlDeviceGetPlatformInfo, gpu, NONE));
    code = fill64(fields, value, 4);
    if (!code) {
        out->slot = (unsigned char)value[0];
        out->tray = (unsigned char)value[1];
        out->host = (unsigned char)value[2];
        out->module = (unsigned char)value[3];
    }
    return code;
}

int nvmlDeviceGetC2cModeInfoV(Device gpu, unsigned *out)
{
    ASK(GPU("nvmlDeviceGetC2cModeInfoV", "nvmlDeviceGetC2cModeInfo", gpu, NONE));
    return fill32(fields, &out, 1);
}

struct addressing_v1 { unsigned version, value; };

int nvmlDeviceGetAddressingMode(Device gpu, struct addressing_v1 *out)
{
    unsigned *value = &out->value;
    if (out->version != 0x01000008)
        return VERSION_MISMATCH;
    ASK(OWN(nvmlDeviceGetAddressingMode, gpu, NONE));
    return fill32(fields, &value, 1);
}

struct repair_v1 { unsigned version, channel, tpc; };

int nvmlDeviceGetRepairStatus(Device gpu, struct repair_v1 *out)
{
    if (out->version != 0x0100000C)
        return VERSION_MISMATCH;
    ASK(OWN(nvmlDeviceGetRepairStatus, gpu, NONE));
    return fill32(fields, (unsigned *[]){&out->channel, &out->tpc}, 2);
}

int nvmlDeviceGetUnrepairableMemoryFlag_v1(Device gpu, unsigned *out) /* a struct of one flag, without a version */
{
    ASK(GPU("nvmlDeviceGetUnrepairableMemoryFlag_v1", "nvmlDeviceGetUnrepairableMemoryFlag", gpu, NONE));
    return fill32(fields, &out, 1);
}

int nvmlDeviceGetViolationStatus(Device gpu, unsigned policy, uint64_t out[2])
{
    ASK(OWN(nvmlDeviceGetViolationStatus, gpu, NUMBERS(1, policy)));
    return fill64(fields, out, 2);
}

/* ---- memory: total, free, used, reserved; the last one only from R510 on ---- */

int nvmlDeviceGetMemoryInfo(Device gpu, uint64_t out[3])
{
    ASK(OWN(nvmlDeviceGetMemoryInfo, gpu, NONE));
    return fill64(fields, out, 3);
}

struct memory_v2 { unsigned version; uint64_t total, reserved, free, used; };

int nvmlDeviceGetMemoryInfo_v2(Device gpu, struct memory_v2 *out)
{
    uint64_t value[4];
    ASK(GPU("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo", gpu, NONE));
    if (out->version != 0x02000028)
        return VERSION_MISMATCH;
    if (fill64(fields, value, 4))
        return FUNCTION_NOT_FOUND;
    *out = (struct memory_v2){out->version, value[0], value[3], value[1], value[2]};
    return SUCCESS;
}

/* ---- temperature ---- */

struct temperature_v1 { unsigned version, sensor; int temperature; };

int nvmlDeviceGetTemperatureV(Device gpu, struct temperature_v1 *out)
{
    if (out->version != 0x0100000C)
        return VERSION_MISMATCH;
    ASK(GPU("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature", gpu, NUMBERS(1, out->sensor)));
    return fill32(fields, (unsigned *[]){(unsigned *)&out->temperature}, 1);
}

struct margin_v1 { unsigned version; int temperature; };

int nvmlDeviceGetMarginTemperature(Device gpu, struct margin_v1 *out)
{
    if (out->version != 0x01000008)
        return VERSION_MISMATCH;
    ASK(OWN(nvmlDeviceGetMarginTemperature, gpu, NONE));
    return fill32(fields, (unsigned *[]){(unsigned *)&out->temperature}, 1);
}

/* ---- PCI: bus id, device id, subsystem id ---- */

struct pci_v2 { char legacy[16]; unsigned domain, bus, device, id, subsystem, reserved[4]; };          /* 52 bytes */
struct pci_v3 { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };      /* 68 bytes */

static int pci(const struct call *call, struct pci_v3 *out)
{
    unsigned part[4];
    char bdf[32], *fields;
    int code = ask(call, &fields);
    if (code)
        return code;
    if (!spell_bdf(fields, part, bdf, sizeof bdf))
        return UNKNOWN;
    fields += strcspn(fields, "\t");
    fields += *fields == '\t';
    *out = (struct pci_v3){.domain = part[0], .bus = part[1], .device = part[2]};
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.%X", part[0], part[1], part[2], part[3]);
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.%X", part[0], part[1], part[2], part[3]);
    return fill32(fields, (unsigned *[]){&out->id, &out->subsystem}, 2);
}

static int old_pci(const struct call *call, struct pci_v2 *out)
{
    struct pci_v3 wide;
    int code = pci(call, &wide);
    if (!code) {
        memset(wide.bus_id, 0, sizeof wide.bus_id);
        memcpy(out, &wide, sizeof *out);
    }
    return code;
}

int nvmlDeviceGetPciInfo_v3(Device gpu, struct pci_v3 *out)
{
    return pci(&(struct call)GPU("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo", gpu, NONE), out);
}

int nvmlDeviceGetPciInfo_v2(Device gpu, struct pci_v2 *out)
{
    return old_pci(&(struct call)GPU("nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo", gpu, NONE), out);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device gpu, unsigned link, struct pci_v3 *out)
{
    return pci(&(struct call)GPU("nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo", gpu,
                                 NUMBERS(1, link)), out);
}

int nvmlDeviceGetNvLinkRemotePciInfo(Device gpu, unsigned link, struct pci_v2 *out)
{
    return old_pci(&(struct call)OWN(nvmlDeviceGetNvLinkRemotePciInfo, gpu,
                                     NUMBERS(1, link)), out);
}

/* ---- lists: asked once without a buffer for the length, then with one ---- */

static int room(const char *fields, unsigned per_item, unsigned *count, const void *out)
{
    unsigned items = *fields != 0, given = *count;
    if (has("claims more") || has("has no room")) {
        *count = has("claims more") ? 0xffffffff : 2 * given + 1;
        return has("claims more at once") || given == 0xffffffff ? SUCCESS : INSUFFICIENT_SIZE;
    }
    for (; *fields; fields++)
        items += *fields == '\t';
    *count = items / per_item;
    return *count && (!out || given < *count) ? INSUFFICIENT_SIZE : SUCCESS;
}

static int clocks(const struct call *call, unsigned *count, unsigned *out)
{
    char *fields;
    int code = ask(call, &fields);
    if (!code)
        code = room(fields, 1, count, out);
    for (unsigned i = 0; !code && i < *count && !has("claims more"); i++) {
        uint64_t value;
        code = next(&fields, &value) == 1 ? SUCCESS : UNKNOWN;
        out[i] = (unsigned)value;
    }
    return code;
}

int nvmlDeviceGetSupportedMemoryClocks(Device gpu, unsigned *count, unsigned *out)
{
    return clocks(&(struct call)OWN(nvmlDeviceGetSupportedMemoryClocks, gpu, NONE),
                  count, out);
}

int nvmlDeviceGetSupportedGraphicsClocks(Device gpu, unsigned memory, unsigned *count, unsigned *out)
{
    return clocks(&(struct call)OWN(nvmlDeviceGetSupportedGraphicsClocks, gpu,
                                    NUMBERS(1, memory)), count, out);
}

static int pages(const struct call *call, unsigned *count, uint64_t *address, uint64_t *timestamp, int with_times)
{
    char *fields;
    int code = ask(call, &fields);
    if (!code && with_times && strstr(fields, "\t-"))
        return FUNCTION_NOT_FOUND;      /* a driver that gave no timestamps has no _v2 */
    if (!code)
        code = room(fields, 2, count, address);
    for (unsigned i = 0; !code && i < *count && !has("claims more"); i++) {
        uint64_t time = 0;
        code = next(&fields, &address[i]) == 1 ? SUCCESS : UNKNOWN;
        if (next(&fields, &time) == 1 && with_times)
            timestamp[i] = time;
    }
    return code;
}

int nvmlDeviceGetRetiredPages(Device gpu, unsigned cause, unsigned *count, uint64_t *address)
{
    return pages(&(struct call)OWN(nvmlDeviceGetRetiredPages, gpu, NUMBERS(1, cause)),
                 count, address, NULL, 0);
}

int nvmlDeviceGetRetiredPages_v2(Device gpu, unsigned cause, unsigned *count, uint64_t *address, uint64_t *timestamp)
{
    return pages(&(struct call)GPU("nvmlDeviceGetRetiredPages_v2", "nvmlDeviceGetRetiredPages", gpu, NUMBERS(1, cause)),
                 count, address, timestamp, 1);
}

struct process_v1 { unsigned pid; uint64_t memory; };
struct process_v2 { unsigned pid; uint64_t memory; unsigned gpu_instance, compute_instance; };

static int processes(const struct call *call, unsigned *count, void *out, size_t size)
{
    char *fields;
    int code = ask(call, &fields);
    if (!code)
        code = room(fields, 2, count, out);
    for (unsigned i = 0; !code && i < *count && !has("claims more"); i++) {
        struct process_v2 one = {.memory = UINT64_MAX, .gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX};
        uint64_t pid, memory;
        code = next(&fields, &pid) == 1 ? SUCCESS : UNKNOWN;
        one.pid = (unsigned)pid;
        if (next(&fields, &memory) == 1)
            one.memory = memory;
        memcpy((char *)out + i * size, &one, size);
    }
    return code;
}

#define PROCESSES(function, suffix, shape) \
    int function##suffix(Device gpu, unsigned *count, struct shape *out) \
    { return processes(&(struct call)GPU(#function #suffix, #function, gpu, NONE), count, out, sizeof *out); }

PROCESSES(nvmlDeviceGetComputeRunningProcesses, , process_v1)
PROCESSES(nvmlDeviceGetComputeRunningProcesses, _v2, process_v2)
PROCESSES(nvmlDeviceGetComputeRunningProcesses, _v3, process_v2)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, , process_v1)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, _v2, process_v2)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, _v3, process_v2)

/* ---- affinity: as many 64-bit words as the caller has room for ---- */

static int words(const struct call *call, unsigned size, uint64_t *out)
{
    char *fields;
    int code = ask(call, &fields);
    if (code || !size)
        return code ? code : INVALID_ARGUMENT;
    memset(out, 0, size * sizeof *out);
    for (unsigned i = 0; i < size && *fields; i++)
        if (next(&fields, &out[i]) != 1)
            return UNKNOWN;
    return SUCCESS;
}

int nvmlDeviceGetCpuAffinity(Device gpu, unsigned size, uint64_t *out)
{
    return words(&(struct call)OWN(nvmlDeviceGetCpuAffinity, gpu, NONE), size, out);
}

int nvmlDeviceGetMemoryAffinity(Device gpu, unsigned size, uint64_t *out, unsigned scope)
{
    return words(&(struct call)OWN(nvmlDeviceGetMemoryAffinity, gpu, NUMBERS(1, scope)),
                 size, out);
}

/* ---- field values ---- */

struct field_value {
    unsigned field, scope;
    int64_t timestamp, latency;
    unsigned type, code;
    union { double real; unsigned small; uint64_t wide; int64_t signed_wide; int signed_small; } value;
};
enum { DOUBLE = 0, UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3, SIGNED_LONG_LONG = 4, SIGNED_INT = 5 };

static void fill_value(char *text, struct field_value *out)
{
    if (strpbrk(text, ".eE")) {
        out->type = DOUBLE;
        out->value.real = strtod(text, NULL);
        return;
    }
    int negative = *text == '-';
    out->code = next(&text, &out->value.wide) == 1 ? SUCCESS : UNKNOWN;
    if (negative)
        out->type = out->value.signed_wide >= INT32_MIN ? SIGNED_INT : SIGNED_LONG_LONG;
    else
        out->type = out->value.wide <= UINT32_MAX ? UNSIGNED_INT : UNSIGNED_LONG_LONG;
}

int nvmlDeviceGetFieldValues(Device gpu, int count, struct field_value *out)
{
    if (!users)
        return UNINITIALIZED;
    for (int i = 0; i < count; i++) {
        struct call call = OWN(nvmlDeviceGetFieldValues, gpu,
                               NUMBERS(out[i].scope ? 2 : 1, out[i].field, out[i].scope));
        char question[MAX_QUESTION], *fields;
        int code = enter(&call, question, &fields);
        if (code)
            return code;
        out[i].code = look_up(&call, question, &fields);
        if (!out[i].code)
            fill_value(fields, &out[i]);
    }
    return SUCCESS;
}

/* ---- fabric: cluster UUID in hexadecimal digits, status, clique, state, health mask, health summary ---- */

struct fabric { unsigned char uuid[16]; unsigned status, clique; unsigned char state; };
struct fabric_v { unsigned version; struct fabric fabric; unsigned health_mask; unsigned char health_summary; };

static int fabric(const struct call *call, struct fabric *out, uint64_t health[2])
{
    char *fields;
    uint64_t value[3];
    int code = ask(call, &fields);
    if (code)
        return code;
    for (int i = 0; i < 16; i++, fields += 2) {
        fields += *fields == '-';
        if (sscanf(fields, "%2hhx", &out->uuid[i]) != 1)
            return UNKNOWN;
    }
    fields += *fields == '\t';
    for (int i = 0; i < 3; i++)
        if (next(&fields, &value[i]) != 1)
            return UNKNOWN;
    out->status = (unsigned)value[0];
    out->clique = (unsigned)value[1];
    out->state = (unsigned char)value[2];
    next(&fields, &health[0]);
    next(&fields, &health[1]);
    return SUCCESS;
}

int nvmlDeviceGetGpuFabricInfo(Device gpu, struct fabric *out)
{
    uint64_t health[2] = {0};
    return fabric(&(struct call)OWN(nvmlDeviceGetGpuFabricInfo, gpu, NONE), out, health);
}

int nvmlDeviceGetGpuFabricInfoV(Device gpu, struct fabric_v *out)
{
    uint64_t health[2] = {0};
    if (out->version != 0x02000024 && out->version != 0x03000028)
        return VERSION_MISMATCH;
    int code = fabric(&(struct call)GPU("nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetGpuFabricInfo", gpu, NONE),
                      &out->fabric, health);
    if (code)
        return code;
    out->health_mask = (unsigned)health[0];
    if (out->version == 0x03000028)
        out->health_summary = (unsigned char)health[1];
    return SUCCESS;
}

/* ---- events: NVML_STANDIN_XID=INDEX:NUMBER is one that is waiting; after it there is none ---- */

struct event { Device gpu; unsigned long long type, data; unsigned gpu_instance, compute_instance; };

int nvmlEventSetCreate(void **set) { static int one; *set = &one; return users ? SUCCESS : UNINITIALIZED; }
int nvmlEventSetFree(void *set) { (void)set; return SUCCESS; }

int nvmlDeviceRegisterEvents(Device gpu, unsigned long long types, void *set)
{
    return gpu && set && types ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlEventSetWait_v2(void *set, struct event *out, unsigned timeout_ms)
{
    static int told;
    struct call call = HOST("nvmlEventSetWait_v2", "nvmlEventSetWait", NONE);
    char *fields;
    int code = suffer(&call, "nvmlEventSetWait", &fields);
    if (code)
        return code;
    const char *waiting = getenv("NVML_STANDIN_XID");
    unsigned index, number;
    if (!set || told++ || !waiting || sscanf(waiting, "%u:%u", &index, &number) != 2 || index >= MAX_GPUS) {
        usleep(timeout_ms * 1000);
        return 10;  /* NVML_ERROR_TIMEOUT */
    }
    *out = (struct event){.gpu = &gpus[index], .type = 0x8, .data = number, .gpu_instance = ~0u, .compute_instance = ~0u};
    return SUCCESS;
}

_Static_assert(sizeof(struct pci_v2) == 52 && sizeof(struct pci_v3) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(struct memory_v2) == 0x28, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct field_value) == 40, "nvmlFieldValue_t");
_Static_assert(sizeof(struct process_v1) == 16 && sizeof(struct process_v2) == 24, "nvmlProcessInfo_t");
_Static_assert(sizeof(struct fabric_v) == 0x28, "nvmlGpuFabricInfo_v3_t; v2 ends before the last field");
