package session

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock takes the file for this process until it is closed or the process ends,
// however that happens. It returns errInUse where another holds it. The locked
// byte lies far beyond the end: Windows lets nobody read what is locked.
func lock(f *os.File) error {
	at := &windows.Overlapped{OffsetHigh: 0x7fffffff}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errInUse
	}
	return err
}
