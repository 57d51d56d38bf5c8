"""How texts were pasted: what stands around the output of tools is undone, once and before any reader."""
