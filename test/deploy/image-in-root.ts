/**
 * Builds the image in a Debian root instead of a container engine, each step of the Dockerfile as it is
 * written, and runs what it starts: `node dist/test/deploy/image-in-root.js ROOT`, by root. Node and npm must
 * be in the root. What COPY takes is what git knows. All stages share the root, so a file that a stage forgot
 * to copy can be missed; no other step can.
 */

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

const STAGES = ['build', 'base', 'logring'];
/** What a step has nothing to do for here. */
const NOTHING_TO_DO = new Set(['VOLUME', 'EXPOSE']);

class Image {
  readonly #root: string;
  readonly #files: readonly string[];
  readonly #environment: Record<string, string> = {
    PATH: '/usr/local/bin:/usr/bin:/usr/sbin:/bin',
    HOME: '/root',
    LOGRING_PORT: '0',
    LOGRING_API_KEYS: 'key',
  };
  #directory = '/';
  #user = '0:0';
  #healthCheck: string[] = [];
  #entryPoint: string[] = [];

  constructor(root: string) {
    this.#root = root;
    this.#files = execFileSync('git', ['ls-files'], { encoding: 'utf8' }).trim().split('\n');
  }

  /** Throws when a step fails, or is one that it does not know. */
  step(line: string): void {
    const [instruction, rest] = split(line);
    if (instruction === 'FROM') this.#user = '0:0';
    else if (instruction === 'WORKDIR') this.#enter(rest);
    else if (instruction === 'COPY') this.#copy(rest.split(' '));
    else if (instruction === 'RUN') this.#inRoot(['/bin/sh', '-ec', rest]);
    else if (instruction === 'ENV')
      Object.assign(this.#environment, Object.fromEntries(rest.split(' ').map(nameAndValue)));
    else if (instruction === 'USER') this.#user = rest;
    else if (instruction === 'HEALTHCHECK') this.#healthCheck = JSON.parse(rest.slice(rest.indexOf('[')));
    else if (instruction === 'ENTRYPOINT') this.#entryPoint = JSON.parse(rest);
    else if (!NOTHING_TO_DO.has(instruction)) throw new Error(`no way to do ${line} here`);
  }

  /** Starts it; resolves once its health check says yes, with what the start-up line tells. */
  async run(): Promise<LogLine> {
    const child = spawn('chroot', this.#command(this.#entryPoint), {
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    try {
      const listening = await lineWith(lines, 'listening');
      this.#environment.LOGRING_PORT = new URL(String(listening.url)).port;
      await lineWith(lines, 'ready');
      if (!readFileSync(`/proc/${child.pid}/maps`, 'utf8').includes('/libjemalloc.so'))
        throw new Error('jemalloc is not preloaded');
      const check = this.#healthCheck;
      this.#inRoot(check);
      this.#environment.LOGRING_PORT = '1';
      const { status } = spawnSync('chroot', this.#command(check), { env: this.#environment });
      if (status === 0) throw new Error('the health check says yes when nothing answers');
      child.kill('SIGTERM');
      await lineWith(lines, 'stopped: everything is committed');
      return listening;
    } finally {
      child.kill('SIGKILL');
    }
  }

  /** Of what the image adds to its base. */
  sizeText(): string {
    return this.#inRoot(['du', '-sh', this.#directory]).trim();
  }

  #enter(directory: string): void {
    this.#directory = directory;
    mkdirSync(join(this.#root, directory), { recursive: true });
  }

  #copy(words: string[]): void {
    const isFromStage = words[0].startsWith('--from=');
    const sources = words.slice(isFromStage ? 1 : 0, -1);
    const target = join(this.#root, this.#directory, words.at(-1)!);
    for (const source of sources) {
      const to = words.at(-1)!.endsWith('./') ? join(target, source.split('/').at(-1)!) : target;
      mkdirSync(dirname(to), { recursive: true });
      if (isFromStage) this.#inRoot(['cp', '-rT', source, to.slice(this.#root.length)]);
      else for (const file of this.#files) if (source === '.' || file === source) copyFile(file, target);
    }
  }

  #command(command: readonly string[]): string[] {
    const [name, ...args] = command;
    // chroot itself has no working directory.
    return [
      `--userspec=${this.#user}`,
      this.#root,
      '/bin/sh',
      '-c',
      `cd ${this.#directory} && exec "$@"`,
      name,
      name,
      ...args,
    ];
  }

  #inRoot(command: readonly string[]): string {
    return execFileSync('chroot', this.#command(command), {
      env: this.#environment,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      maxBuffer: 2 ** 28,
    });
  }
}

function copyFile(file: string, directory: string): void {
  const target = join(directory, file);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(file, target);
}

function split(line: string): [instruction: string, rest: string] {
  const space = line.indexOf(' ');
  return [line.slice(0, space), line.slice(space + 1).trim()];
}

/** Steps of the stages that make the image, continued lines joined. */
function stepsOf(dockerfile: string): string[] {
  const lines = dockerfile
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  let stage = '';
  return lines.filter((line) => {
    if (line.startsWith('FROM ')) stage = line.split(' AS ')[1];
    return STAGES.includes(stage);
  });
}

type LogLine = Record<string, unknown>;

/** A value may have a `=` itself. */
function nameAndValue(pair: string): [string, string] {
  const at = pair.indexOf('=');
  return [pair.slice(0, at), pair.slice(at + 1)];
}

/** The next line of the log with that message. Rejects when the log ends without it. */
async function lineWith(lines: AsyncIterator<string>, message: string): Promise<LogLine> {
  for (;;) {
    const { done, value } = await lines.next();
    if (done) throw new Error(`it ended before it said: ${message}`);
    const line = JSON.parse(value) as LogLine;
    if (line.msg === message) return line;
  }
}

const [root] = process.argv.slice(2);
const image = new Image(root);
for (const line of stepsOf(readFileSync('Dockerfile', 'utf8'))) {
  process.stdout.write(`${line.slice(0, 110)}\n`);
  image.step(line);
}
const { http, httpPackage, httpFallback, node } = await image.run();
process.stdout.write(`${image.sizeText()}: Node ${node}, ${http} of ${httpPackage}\n`);
if (http !== 'uWebSockets.js') throw new Error(`not the native HTTP server: ${httpFallback}`);
