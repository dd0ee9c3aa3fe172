/**
 * What npm publishes, installed where nothing else is: the command is there, serves, shows its demo, and ends
 * when npx is ended.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChildService } from '../child-service.js';
import { eventually } from '../eventually.js';

const run = promisify(execFile);
/** Not what npm tells its own scripts about this package. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm_|LOGRING_|INIT_CWD$)/i.test(name)),
);

let directory: string;
let npx: ChildProcess | null = null;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'logring-tarball-'));
  const { stdout } = await run(
    'npm',
    ['pack', '--ignore-scripts', '--json', '--pack-destination', directory],
    {
      env: environment,
    },
  );
  const packed = JSON.parse(stdout) as { filename: string }[];
  await writeFile(join(directory, 'package.json'), '{ "private": true }');
  const tarball = `./${Object.values(packed)[0].filename}`;
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball], {
    cwd: directory,
    env: environment,
  });
});

afterAll(async () => {
  npx?.kill('SIGKILL');
  await rm(directory, { recursive: true, force: true });
});

test('an installation takes at most 60 MB', async () => {
  const { stdout } = await run('du', ['-sm', join(directory, 'node_modules')]);
  expect(Number.parseInt(stdout, 10)).toBeLessThanOrEqual(60);
});

test('npx logring --help answers', async () => {
  const { stdout } = await run('npx', ['logring', '--help'], { cwd: directory, env: environment });
  expect(stdout).toMatch(/^Usage: logring/);
  expect(stdout).toMatch(/LOGRING_DATA_DIR/);
});

test('npx logring serves; the SIGTERM of a supervisor ends all of it, in order', async () => {
  npx = spawn('npx', ['logring'], {
    cwd: directory,
    env: { ...environment, LOGRING_PORT: '0', LOGRING_API_KEYS: 'key' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [npx.stdout!, npx.stderr!]) {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      output += piece;
    });
  }
  const readyLine = () => output.split('\n').find((line) => line.includes('"msg":"ready"'));
  await eventually(
    () => readyLine() !== undefined,
    () => output,
  );
  const { url, pid } = JSON.parse(readyLine()!) as { url: string; pid: number };
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  npx.kill('SIGTERM');
  await eventually(
    () => output.includes('stopped: everything is committed') && !isAlive(pid),
    () => output,
  );
});

test('npx logring demo shows it; SIGTERM ends all of it and leaves nothing behind', async () => {
  const temporary = join(directory, 'temporary');
  await mkdir(temporary);
  npx = spawn('npx', ['logring', 'demo'], {
    cwd: directory,
    env: { ...environment, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [npx.stdout!, npx.stderr!]) {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      output += piece;
    });
  }
  await eventually(
    () => output.includes('Ctrl-C'),
    () => output,
  );
  const stores = (await readdir(temporary)).filter((name) => name.startsWith('logring-demo-'));
  expect(stores).toHaveLength(1);
  const page = /^http\S+/m.exec(output)?.[0] ?? '';
  expect((await fetch(page)).status).toBe(200);
  npx.kill('SIGTERM');
  await eventually(async () => !(await readdir(temporary)).includes(stores[0]));
  await eventually(() =>
    fetch(page).then(
      () => false,
      () => true,
    ),
  );
});

test('a signal that comes twice at once, as to a process group with npm in it, ends it in order', async () => {
  const service = await startChildService({ LOGRING_DATA_DIR: join(directory, 'twice') });
  process.kill(service.processId, 'SIGTERM');
  expect(await service.kill('SIGTERM')).toBe(0);
  expect(service.output()).toMatch(/stopped: everything is committed/);
});

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch {
    return false;
  }
}
