/** The service's own log: for people on a terminal, and JSON for everything else. */

import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const LOG = new URL('../src/service-log.js', import.meta.url).href;
/** Writes a line and says whether pino-pretty was loaded for it. */
const SCRIPT = `
  import { createRequire } from 'node:module';
  const { createLog } = await import('${LOG}');
  const log = await createLog({ LOG_FORMAT: process.argv[1], LOG_LEVEL: 'info' });
  log.warn({ url: 'http://x', text: 'a\\u001b[2J\\nb' }, 'ready');
  const loaded = Object.keys(createRequire('/').cache).some((path) => path.includes('pino-pretty'));
  process.stderr.write('pino-pretty: ' + loaded);
  process.exit(0);`;

const ARGUMENTS = ['--input-type=module', '-e', SCRIPT];

function run(program: string, args: readonly string[], environment: Record<string, string> = {}) {
  const env = { PATH: process.env.PATH, TERM: 'xterm', ...environment };
  return spawnSync(program, args, { env, encoding: 'utf8', timeout: 60_000 });
}

const PRETTY =
  /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\] WARN: ready \{"url":"http:\/\/x","text":"a\\u001b\[2J\\nb"\}/;

test('JSON where nobody looks, without loading what is for people', () => {
  for (const format of ['auto', 'json']) {
    const { stdout, stderr } = run(process.execPath, [...ARGUMENTS, format]);
    expect(JSON.parse(stdout)).toMatchObject({ level: 40, name: 'logring', msg: 'ready', url: 'http://x' });
    expect(stderr).toBe('pino-pretty: false');
  }
});

test('for people where it is asked for: no colours in a file, and log text stays text', () => {
  const { stdout, stderr } = run(process.execPath, [...ARGUMENTS, 'pretty']);
  expect(stdout).toMatch(PRETTY);
  expect(stderr).toBe('pino-pretty: true');
});

const hasTerminal = spawnSync('script', ['--version']).status === 0;

test.skipIf(!hasTerminal)('on a terminal: for people, in colour but with NO_COLOR (needs script)', () => {
  const onTerminal = (format: string, environment: Record<string, string> = {}) => {
    const command = '"$NODE" --input-type=module -e "$SCRIPT" "$FORMAT"';
    const settings = { NODE: process.execPath, SCRIPT, FORMAT: format, ...environment };
    return run('script', ['-qec', command, '/dev/null'], settings).stdout;
  };
  expect(onTerminal('auto')).toContain('\u001b[33mWARN\u001b[39m');
  expect(onTerminal('auto', { NO_COLOR: '1' })).toMatch(PRETTY);
  expect(onTerminal('json')).toMatch(/\{"level":40/);
});
