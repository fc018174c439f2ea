"""What keys have used, as all routers together count it. Pure: no I/O, no clock."""
