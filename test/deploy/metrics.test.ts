/** /metrics as Prometheus reads it, and the dashboard and alert rules that are made for it. */

import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';
import { type Family, parseExposition, type Series } from './exposition.js';

// Its module build is one for bundlers only.
const { parser } = createRequire(import.meta.url)(
  '@prometheus-io/lezer-promql',
) as typeof import('@prometheus-io/lezer-promql');

const EDGE = 'cloudflare.logs.prod';
const RELAY = 'deno-relay-logs';
const PROJECTS = 10_000;
/** Prometheus' own, of every scrape. */
const OTHERS = new Set(['up']);

const noPromtool = spawnSync('promtool', ['--version']).error ?? null;
if (noPromtool !== null) {
  if (process.env.CI === 'true') throw new Error('promtool is needed here');
  console.log('skipped: what promtool says of /metrics; it is not installed');
}

let directory: string;
let service: ChildService;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'logring-metrics-'));
  service = await startChildService({ LOGRING_DATA_DIR: directory, LOGRING_CACHE_SECONDS: '900' });
});

afterAll(async () => {
  await service?.kill('SIGTERM');
  await rm(directory, { recursive: true, force: true });
});

async function post(topic: string, entries: readonly unknown[]): Promise<void> {
  const answer = await fetch(`${service.url}/api/logs?source_name=${topic}`, {
    method: 'POST',
    headers: { 'X-API-KEY': TEST_KEY },
    body: JSON.stringify(entries),
  });
  expect(answer.status).toBe(200);
}

async function query(call: string, headers: Record<string, string> = {}): Promise<void> {
  const url = `${service.url}/api/endpoints/query/${call}`;
  expect((await fetch(url, { headers: { 'X-API-KEY': TEST_KEY, ...headers } })).status).toBe(200);
}

async function scrapeText(): Promise<string> {
  return (await fetch(`${service.url}/metrics`)).text();
}

async function scrape(): Promise<Map<string, Family>> {
  return parseExposition(await scrapeText());
}

function hasLabels({ labels }: Series, wanted: Record<string, string>): boolean {
  return Object.entries(wanted).every(([label, value]) => labels[label] === value);
}

/**
 * The value of the series of this name, without a histogram's suffix only where it has none; null without
 * one.
 */
function reading(families: Map<string, Family>, name: string, labels: Record<string, string> = {}) {
  const series = [...families.values()].flatMap((family) => family.series);
  return series.find((one) => one.name === name && hasLabels(one, labels))?.value ?? null;
}

const edge = (project: string) => ({
  project,
  event_message: 'GET | 200',
  metadata: { request: { url: `https://${project}.example.co/rest/v1/t`, path: '/rest/v1/t' } },
});
const relay = (project: string) => ({
  metadata: {
    project_ref: project,
    function_id: `${project}-f`,
    execution_time_ms: 5,
    response: { status_code: 200 },
  },
});

/**
 * Posts an entry of each kind for each project, one that can't be used, and asks every endpoint in every way.
 */
async function useEverything(firstProject: number, endProject: number): Promise<void> {
  const projects = Array.from({ length: endProject - firstProject }, (_, i) => `p${firstProject + i}`);
  const before = (reading(await scrape(), 'logring_entries_received_total', { topic: EDGE }) ?? 0) + 1;
  await post(EDGE, [...projects.map(edge), { event_message: 'of no project' }]);
  await post(RELAY, projects.map(relay));
  // What has no rows is not kept.
  await eventually(async () => {
    const families = await scrape();
    const applied = reading(families, 'logring_entries_applied_total', { topic: RELAY });
    const received = reading(families, 'logring_entries_received_total', { topic: EDGE });
    return applied === endProject && received === before + projects.length;
  });
  for (const project of [projects[0], projects[1], projects.at(-1)!]) {
    await query(`logs.all?project=${project}&project_tier=PRO`);
    for (let i = 0; i < 2; i++) {
      await query(`functions.invocation-stats?project=${project}&interval=1hr`);
      await query(`usage.api-counts?project=${project}&interval=hourly`);
    }
    await query(`functions.invocation-stats?project=${project}&interval=1hr`, {
      'Cache-Control': 'no-cache',
    });
  }
}

test('names, types, units and help are as Prometheus wants them', async () => {
  await useEverything(0, 100);
  const families = await scrape();
  const own = [...families.values()].filter(({ name }) => name.startsWith('logring_'));
  const document = await readFile('docs/metrics.md', 'utf8');
  expect(own.map(({ name }) => name).sort()).toEqual(
    [...document.matchAll(/^\| `(logring_\w+)`/gm)].map(([, name]) => name),
  );
  expect(own.length).toBeGreaterThan(40);
  for (const { name, type, help } of own) {
    expect(`${name} ${type === 'counter'}`).toBe(`${name} ${name.endsWith('_total')}`);
    expect(`${name} ${help.length > 5}`).toBe(`${name} true`);
    expect(name).not.toMatch(/_(ms|us|minutes|kb|mb|mib|percent)(_|$)/);
  }
  for (const name of ['freshness', 'apply_duration', 'commit_duration']) {
    expect(families.get(`logring_${name}_seconds`)?.type).toBe('histogram');
  }
  expect(() => parseExposition('# HELP a b\n# TYPE a gauge\na{b="c} 1\n')).toThrow(/not Prometheus/);
});

test.skipIf(noPromtool !== null)("Prometheus' own tool reads /metrics, and the alert rules", async () => {
  const check = (kind: string, args: readonly string[], input: string) =>
    spawnSync('promtool', ['check', kind, ...args], { input, encoding: 'utf8' });
  const metrics = check('metrics', [], await scrapeText());
  expect([metrics.status, metrics.stderr]).toEqual([0, '']);
  expect(check('metrics', [], 'a{b="c} 1\n').status).toBe(1);
  expect(check('rules', ['deploy/alerts.yaml'], '')).toMatchObject({ status: 0 });
  const base = 'https://example.com/logring/blob/main/';
  const { stdout } = spawnSync('npm', ['run', '--silent', 'alerts', '--', base], { encoding: 'utf8' });
  const file = join(directory, 'alerts.yaml');
  await writeFile(file, stdout);
  expect(check('rules', [file], '')).toMatchObject({ status: 0 });
  const links = (await rules(stdout)).map(({ annotations }) => annotations.runbook_url);
  expect(links.length).toBeGreaterThan(20);
  expect(links.filter((link) => !link.startsWith(`${base}docs/operating.md#logring`))).toEqual([]);
});

test('what came in, what is kept and how it was answered can be read off', async () => {
  const families = await scrape();
  const check = (name: string, labels: Record<string, string>, expected: number | null) =>
    expect([name, reading(families, name, labels)]).toEqual([name, expected]);
  check('logring_entries_received_total', { topic: EDGE }, 101);
  check('logring_entries_applied_total', { topic: EDGE }, 100);
  check('logring_dead_letters_total', { topic: EDGE, reason: 'missing-project' }, 1);
  check('logring_lag_records', { topic: EDGE }, 0);
  check('logring_lag_seconds', { topic: EDGE }, 0);
  check('logring_rows', { tier: '90d' }, 100);
  check('logring_usage_urls', {}, 100);
  check('logring_usage_entries', {}, 100);
  check('logring_standing_expressions', {}, 3);
  check('logring_log_source_up', {}, 1);
  check('logring_offset_gaps', {}, 0);
  check('logring_held_partitions', {}, 0);
  for (const [series, count] of [
    ['logs.all none', 3],
    ['functions.invocation-stats hit', 3],
    ['functions.invocation-stats miss', 3],
    ['functions.invocation-stats refresh', 3],
    ['usage.api-counts hit', 3],
    ['usage.api-counts miss', 3],
    ['ingest none', 2],
  ] as const) {
    const [route, cache] = series.split(' ');
    check('logring_http_request_duration_seconds_count', { route, cache }, count);
  }
  check('logring_freshness_seconds_count', { topic: RELAY }, 1);
});

test(`the number of series is the same with ${PROJECTS} projects`, async () => {
  const seriesOf = (families: Map<string, Family>) =>
    [...families.values()].flatMap(({ series }) =>
      series.map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`),
    );
  // The runtime's own come as its kinds of handles and of garbage collection do.
  const steady = (series: string) => !series.startsWith('nodejs_');
  const before = seriesOf(await scrape()).filter(steady);
  await useEverything(100, PROJECTS);
  expect(
    seriesOf(await scrape())
      .filter(steady)
      .filter((series) => !before.includes(series)),
  ).toEqual([]);
});

interface Found {
  readonly metrics: readonly string[];
  readonly labels: readonly string[];
}

/** The metrics and labels that a PromQL expression names; throws where it doesn't parse. */
function namesIn(expression: string): Found {
  const text = expression
    .replaceAll('$__rate_interval', '5m')
    .replaceAll('$instance', 'any')
    .replaceAll('$__all', '.*');
  const metrics: string[] = [];
  const labels: string[] = [];
  parser.parse(text).iterate({
    enter({ name, type, from, to, node }) {
      const piece = text.slice(from, to);
      if (type.isError)
        throw new Error(`does not parse at ${from}: ${text.slice(0, from)}▶${text.slice(from)}`);
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector') metrics.push(piece);
      if (name === 'LabelName') labels.push(piece);
    },
  });
  if (metrics.length === 0) throw new Error(`names no metric: ${text}`);
  return { metrics, labels };
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

async function rules(text?: string): Promise<Rule[]> {
  const { groups } = parseYaml(text ?? (await readFile('deploy/alerts.yaml', 'utf8'))) as {
    groups: { rules: Rule[] }[];
  };
  return groups.flatMap((group) => group.rules);
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
  /** Of a row that is shown when it is opened. */
  readonly panels?: readonly Panel[];
}

async function panels(): Promise<Panel[]> {
  const { panels } = JSON.parse(await readFile('deploy/grafana-dashboard.json', 'utf8')) as Required<Panel>;
  return panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
}

test('every expression of dashboard and alerts parses and names series that exist', async () => {
  const families = await scrape();
  const known = new Set(OTHERS);
  const labelsKnown = new Set(['instance', 'job', 'le']);
  for (const { name, type, series } of families.values()) {
    if (type === 'histogram') for (const part of ['bucket', 'sum', 'count']) known.add(`${name}_${part}`);
    else known.add(name);
    for (const { labels } of series) for (const label of Object.keys(labels)) labelsKnown.add(label);
  }
  const expressions = [
    ...(await rules()).map(({ alert, expr }) => [alert, expr]),
    ...(await panels()).flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr])),
  ];
  expect(expressions.length).toBeGreaterThan(50);
  const unknown = expressions.flatMap(([where, expr]) => {
    const { metrics, labels } = namesIn(expr);
    return [
      ...metrics.filter((name) => !known.has(name)),
      ...labels.filter((name) => !labelsKnown.has(name)),
    ].map((name) => `${where}: ${name}`);
  });
  expect(unknown).toEqual([]);
  expect(() => namesIn('sum by (topic) (rate(logring_rows[5m])')).toThrow(/does not parse/);
});

test('every alert has its runbook in the documents', async () => {
  for (const { alert, annotations } of await rules()) {
    const [file, anchor] = annotations.runbook_url.split('#');
    expect(anchor).toBe(alert.toLowerCase());
    const headings = [...(await readFile(file, 'utf8')).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      heading.toLowerCase(),
    );
    expect(headings).toContain(anchor);
  }
});
