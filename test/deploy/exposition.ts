/** Prometheus' text format, taken apart strictly: what promtool accepts and prom-client writes. */

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly series: readonly Series[];
}

export interface Series {
  /** With `_bucket`, `_sum` or `_count` in a histogram's. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Reading extends Family {
  type: string;
  readonly series: Series[];
}

const SERIES =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

/** By name. Throws at a line that is not of the format, and at a series outside of its family. */
export function parseExposition(text: string): Map<string, Family> {
  const families = new Map<string, Reading>();
  let family: Reading | null = null;
  const fail = (line: string): never => {
    throw new Error(`not Prometheus' text format: ${line}`);
  };
  for (const [at, line] of text.split('\n').entries()) {
    if (line === '') continue;
    const [, kind, name, rest] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (kind === 'HELP') {
      if (families.has(name)) fail(line);
      family = { name, help: rest, type: '', series: [] };
      families.set(name, family);
    } else if (kind === 'TYPE') {
      if (family?.name !== name || family.type !== '') return fail(line);
      family.type = rest;
    } else {
      const [, series, labels = '', value] = SERIES.exec(line) ?? fail(`line ${at + 1}: ${line}`);
      const suffix = family === null ? '?' : series.slice(family.name.length);
      const suffixes = family?.type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
      if (family === null || !series.startsWith(family.name)) return fail(line);
      const isSummarys = family.type === 'summary' && ['', '_sum', '_count'].includes(suffix);
      if ((!suffixes.includes(suffix) && !isSummarys) || !isNumber(value)) fail(line);
      family.series.push({
        name: series,
        labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, label, text]) => [label, text])),
        value: Number(value.replace('Inf', 'Infinity')),
      });
    }
  }
  return families;
}

/** Prometheus reads them as Go does, in either case. */
function isNumber(value: string): boolean {
  return /^nan$/i.test(value) || !Number.isNaN(Number(value.replace('Inf', 'Infinity')));
}
