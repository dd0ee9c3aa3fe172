/** Child processes of a bench: they take an order by message, and answer with a report. */

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** `module` is relative to this directory. */
export function startChild(module: string): ChildProcess {
  return fork(fileURLToPath(new URL(module, import.meta.url)));
}

export function reportOf<Report>(child: ChildProcess): Promise<Report> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as Report));
    child.once('exit', (code) => {
      if (code !== 0) reject(new Error(`a child process of the bench ended with ${code}`));
    });
  });
}
