//go:build !linux

package controlplane

import "syscall"

func endWithParent() *syscall.SysProcAttr { return nil }
