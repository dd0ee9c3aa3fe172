/**
 * The figures of the comparison as tables in Markdown: milliseconds, and how many times Logring's a peer's
 * are.
 */

import type { Figure } from './rounds.js';
import type { PeerColumn, PeerReport } from './run.js';

/** One for each reach: only figures of one kind stand in a line. And one of all that were fed meanwhile. */
export function tables(report: PeerReport): string {
  const { questions, columns, absent } = report;
  const reaches = [...new Set(columns.map(({ reach }) => reach))];
  const texts = reaches.map((reach) => {
    const [logring, ...peers] = columns.filter((column) => column.reach === reach);
    const cells = questions.map((question) => [
      question,
      timeOf(logring.figures[question]),
      ...peers.map(({ figures }) => besideOurs(figures[question], logring.figures[question])),
    ]);
    const header = [`p50 / p99 in ms, ${reach}`, ...[logring, ...peers].map(({ name }) => name)];
    const notes = [logring, ...peers].map(
      ({ name, version, includes }) => `- ${name} (${version}): the time includes ${includes}.\n`,
    );
    return `${markdown(header, cells)}\n${notes.join('')}\n`;
  });
  const left = Object.entries(absent).map(([name, reason]) => `- ${name} is left out: ${reason}.\n`);
  return `${texts.join('')}${fedTable(report)}\n${left.join('')}`;
}

function fedTable({ questions, fed }: PeerReport): string {
  const [logring, ...peers] = fed;
  const cells = questions.map((question) => [
    question,
    timeOf(logring.figures[question]),
    ...peers.map(({ figures }) => besideOurs(figures[question], logring.figures[question])),
  ]);
  const arrived = fed.map(({ arrivedPerSecond }) => arrivedPerSecond.toFixed(0));
  const header = ['p50 / p99 in ms while entries arrive', ...fed.map(({ name }) => name)];
  return markdown(header, [['entries a second', ...arrived], ...cells]);
}

/** How many times as long the median takes in the last report as in the first. */
export function growthTable(
  reports: readonly { readonly sizes: { readonly entries: number }; readonly report: PeerReport }[],
): string {
  const first = reports[0];
  const last = reports.at(-1)!;
  const titleOf = ({ name, reach }: PeerColumn) => `${name}, ${reach}`;
  const cells = last.report.columns.map((column) => [
    titleOf(column),
    ...last.report.questions.map((question) => {
      const before = first.report.columns.find((other) => titleOf(other) === titleOf(column))?.figures[
        question
      ];
      const after = column.figures[question];
      return before && after ? `×${(after.p50Ms / before.p50Ms).toFixed(1)}` : '–';
    }),
  ]);
  const title = `p50 from ${first.sizes.entries} to ${last.sizes.entries} entries`;
  return markdown([title, ...last.report.questions], cells);
}

function timeOf(figure: Figure | null | undefined): string {
  return figure ? `${digits(figure.p50Ms)} / ${digits(figure.p99Ms)}` : '–';
}

function besideOurs(figure: Figure | null | undefined, ours: Figure | null | undefined): string {
  return figure && ours ? `${timeOf(figure)} (×${digits(figure.p50Ms / ours.p50Ms)})` : '–';
}

function digits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(2);
}

function markdown(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`;
  return line(header) + line(header.map(() => '---')) + rows.map(line).join('');
}
