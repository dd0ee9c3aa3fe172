/**
 * A process that takes a data directory when it is told to, and holds it until it ends: each line of its
 * input is a directory, each line of its output says how it went.
 */

import { createInterface } from 'node:readline';
import { lockDirectory } from '../../src/store/directory/directory-lock.js';

const stay = setInterval(() => undefined, 60_000);
const input = createInterface({ input: process.stdin });
input.on('close', () => clearInterval(stay));
input.on('line', (directory) => {
  lockDirectory(directory).then(
    () => process.stdout.write('held\n'),
    (error: Error) => process.stdout.write(`${error.name}: ${error.message}\n`),
  );
});
process.stdout.write('waits\n');
