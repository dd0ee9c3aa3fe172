/** docs/metrics.md, made from the metrics as they are declared. Run by itself it writes the file. */

import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Metrics } from '../../src/metrics/metrics.js';
import { readService, type ServiceReadingsPorts } from '../../src/metrics/service-readings.js';

export const DOCUMENT = 'docs/metrics.md';

const HEAD = `# Metrics

<!-- Made by \`npm run docs:metrics\` from the metrics' declarations in src/metrics/: change those. -->

\`GET /metrics\` has these, in Prometheus' text format, and those of [prom-client](https://github.com/siimon/prom-client)
about process and runtime (\`process_*\`, \`nodejs_*\`). [Watching it](operating.md#watching-it) says how to scrape it
and where alerts and a dashboard are. A metric has no series where what it is about is off or has not come yet: without
\`LOGRING_CLUSTER_PORT\`, for example, those of members have none.

| Metric | Type | Labels | What it says |
|---|---|---|---|
`;

/** A metric as it is declared, whether or not it has series yet. */
interface MetricFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

export function metricsDocument(): string {
  const metrics = new Metrics(() => 0);
  // Never scraped: nothing is read from what isn't there.
  readService(metrics, {} as ServiceReadingsPorts);
  const rows = familiesOf(metrics).map(
    ({ name, type, labelNames, help }) =>
      `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(', ')} | ${help.replaceAll('|', '\\|')} |\n`,
  );
  return HEAD + rows.join('');
}

/** Logring's own, in the order of their names. */
function familiesOf({ registry }: Metrics): MetricFamily[] {
  // The library's types leave out the labels.
  const all = registry.getMetricsAsArray() as readonly unknown[] as readonly MetricFamily[];
  return all
    .filter(({ name }) => name.startsWith('logring_'))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(DOCUMENT, metricsDocument());
