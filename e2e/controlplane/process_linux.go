package controlplane

import "syscall"

// endWithParent makes the kernel end the program when the test process is gone,
// so that a test run that is killed leaves nothing behind.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
