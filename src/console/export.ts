/** What is shown as a file: NDJSON, or CSV that a spreadsheet opens without running any of it. */

import { element } from './dom.js';
import { isoText } from './formats.js';
import { writtenJson } from './json-tree.js';

/** All records of an export have the same members. */
export interface ExportRecord {
  /** µs since the epoch. */
  readonly timestamp: number;
}

/** How long a browser may take to begin with the file. */
const PATIENCE_MS = 60_000;
/** Spreadsheets take a cell that begins so for a formula. */
const FORMULA = /^[\s\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r]/;

/** Buttons that save the records under a name. */
export function exportButtons(name: () => string, records: () => readonly ExportRecord[]): HTMLElement {
  const save = (label: string, type: string, extension: string, textOf: typeof csvText) => {
    const button = element('button', { type: 'button', class: 'small' }, label);
    button.addEventListener('click', () => {
      const fileName = `${name()
        .replace(/[^\w.-]+/g, '_')
        .slice(0, 80)}.${extension}`;
      saveFile(fileName, new Blob([textOf(records())], { type }));
    });
    return button;
  };
  return element(
    'div',
    { class: 'export', role: 'group', 'aria-label': 'Save as' },
    'Save as',
    save('CSV', 'text/csv', 'csv', csvText),
    save('NDJSON', 'application/x-ndjson', 'ndjson', (all) =>
      all.map((record) => `${writtenJson(record, 0)}\n`).join(''),
    ),
  );
}

/** With the time as people read it in front. */
function csvText(records: readonly ExportRecord[]): string {
  if (records.length === 0) return '';
  const lines = records.map((record) => [isoText(record.timestamp), ...Object.values(record)]);
  return [['time', ...Object.keys(records[0])], ...lines]
    .map((line) => `${line.map(cellText).join(',')}\r\n`)
    .join('');
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = typeof value === 'string' ? value : writtenJson(value, 0);
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  element('a', { href: address, download: name }).click();
  window.setTimeout(() => URL.revokeObjectURL(address), PATIENCE_MS);
}
