"""What tools and files tell of the host: dmidecode, numactl, ibstat, uname, lists of modules."""
