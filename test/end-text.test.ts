/** What the process says when it ends: of what the system refused what, on which file, and what to do. */

import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { endText } from '../src/end-text.js';
import { ofFile } from '../src/store/disk/system-errors.js';

const HERE = tmpdir();

function check(message: string, expected: RegExp, directory = HERE): void {
  expect(endText(new Error(message), directory)).toMatch(expected);
}

test('each refusal of the system is told as what it is, and only a bug is a bug', () => {
  check('ENOSPC: no space left on device, write', /is full; what was committed is safe: make room/);
  // A file system that was mounted read-only after an error.
  check("EROFS: read-only file system, open '/d/f'", /can't be written to any more \(EROFS.*'\/d\/f'\)/);
  check(
    "EIO: i/o error, write '/d/f'",
    /the disk of .* fails \(EIO.*'\/d\/f'\): .*repair the disk.*logring check/,
  );
  check("EMFILE: too many open files, open '/d/f'", /too many files.*'\/d\/f'.*LimitNOFILE/);
  check("ENOENT: no such file or directory, open '/d/f'", /the data directory \/nowhere is gone/, '/nowhere');
  check("EBUSY: resource busy, unlink '/d/f'", /the system refused what the store needs \(EBUSY.*'\/d\/f'\)/);
  check('two commits at a time', /this must not happen/);
});

test('what the system says of an open file names it, once', () => {
  const failed = Object.assign(new Error('EIO: i/o error, fsync'), { syscall: 'fsync' });
  expect(ofFile('/d/f', failed)).toMatchObject({ message: "EIO: i/o error, fsync '/d/f'" });
  const named = Object.assign(new Error("EIO: i/o error, open '/d/f'"), { syscall: 'open', path: '/d/f' });
  expect(ofFile('/d/f', named)).toMatchObject({ message: "EIO: i/o error, open '/d/f'" });
});
