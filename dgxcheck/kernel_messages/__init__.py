"""What the kernel and its drivers log: the forms of their messages, by subject, and what each says."""
