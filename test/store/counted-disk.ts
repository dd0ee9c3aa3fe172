/** The system's disk, which tells what is open. */

import { type Disk, SYSTEM_DISK } from '../../src/store/disk/disk.js';

/** `open`: the descriptors that are; `onOpen` comes before each and may throw. */
export function countedDisk(open: Set<number>, onOpen: (path: string) => void = () => undefined): Disk {
  return {
    ...SYSTEM_DISK,
    open: (path, flags) => {
      onOpen(path);
      const descriptor = SYSTEM_DISK.open(path, flags);
      open.add(descriptor);
      return descriptor;
    },
    close: (descriptor) => {
      open.delete(descriptor);
      SYSTEM_DISK.close(descriptor);
    },
  };
}
