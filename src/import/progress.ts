/** Shows how far an import is: a bar that redraws itself on a terminal, else a line now and then. */

import { basename } from 'node:path';
import type { ImportState } from '../../ingest/embedded-log/import-state.js';
import { BAR_MS, LINE_MS } from './limits.js';

export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** What an import reads from. */
export interface ReadPosition {
  readonly label: string;
  /** null where it isn't known. */
  readonly packedBytes: number | null;
  readonly readBytes: number;
}

/** The bar takes what the text leaves of a line, up to so many cells, and isn't there where that is fewer. */
const MAX_BAR_CELLS = 20;
const MIN_BAR_CELLS = 5;
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const BACK_AND_CLEAR = '\r\u001b[2K';
const DEFAULT_COLUMNS = 80;

export class Progress {
  readonly #output: ProgressOutput;
  readonly #monotonicUs: () => number;
  readonly #source: ReadPosition;
  readonly #startUs: number;
  #shownUs: number;
  #isBarShown = false;
  #waitsFor: string | null = null;
  /** Entries that stood before this run: its rate is not theirs. */
  #countBefore: number | null = null;
  #state: ImportState | null = null;

  constructor(output: ProgressOutput, monotonicUs: () => number, source: ReadPosition) {
    this.#output = output;
    this.#monotonicUs = monotonicUs;
    this.#source = source;
    this.#startUs = monotonicUs();
    this.#shownUs = this.#startUs;
  }

  /** With every chunk, and once before the first. */
  advanced(state: ImportState): void {
    this.#state = state;
    this.#countBefore ??= countOf(state);
    const dueUs = 1000 * (this.#output.isTTY ? BAR_MS : LINE_MS);
    if (this.#monotonicUs() - this.#shownUs >= dueUs) this.#show();
  }

  /** A sentence about what is waited for, said once; null when it is over. */
  waits(why: string | null): void {
    if (why !== null && this.#waitsFor === null) this.#note(`${this.#source.label}: ${why}; waiting`);
    this.#waitsFor = why;
  }

  /** Takes the bar away. */
  end(): void {
    if (this.#isBarShown) this.#output.write(BACK_AND_CLEAR);
    this.#isBarShown = false;
  }

  #note(sentence: string): void {
    this.end();
    this.#output.write(`${sentence}\n`);
  }

  #show(): void {
    this.#shownUs = this.#monotonicUs();
    const line = this.#line();
    if (!this.#output.isTTY) {
      this.#output.write(`${line}\n`);
      return;
    }
    this.#output.write(`${BACK_AND_CLEAR}${line.slice(0, this.#columns - 1)}`);
    this.#isBarShown = true;
  }

  /** 0 columns is what some terminals say that don't know. */
  get #columns(): number {
    return this.#output.columns || DEFAULT_COLUMNS;
  }

  #line(): string {
    const { packedBytes, readBytes } = this.#source;
    const label = basename(this.#source.label);
    const count = this.#state === null ? 0 : countOf(this.#state);
    const rejected = this.#state === null ? 0 : rejectedCount(this.#state);
    const seconds = (this.#shownUs - this.#startUs) / 1e6;
    const rate = Math.round((count - (this.#countBefore ?? 0)) / Math.max(seconds, 0.001));
    const counts = `${grouped(count - rejected)} entries  ${grouped(rate)}/s  ${grouped(rejected)} rejected`;
    if (packedBytes === null) return `${label}  ${byteText(readBytes)}  ${counts}`;
    const share = packedBytes === 0 ? 1 : Math.min(1, readBytes / packedBytes);
    const text = `${Math.floor(100 * share)}% of ${byteText(packedBytes)}  ${counts}`;
    if (!this.#output.isTTY) return `${label}  ${text}`;
    return `${label}  ${barOf(share, this.#columns - label.length - text.length - 6)}${text}`;
  }
}

function barOf(share: number, room: number): string {
  const cells = Math.min(MAX_BAR_CELLS, room);
  if (cells < MIN_BAR_CELLS) return '';
  const filled = Math.floor(share * cells);
  return `[${'#'.repeat(filled)}${'.'.repeat(cells - filled)}] `;
}

export function rejectedCount({ rejectedByReason }: ImportState): number {
  return Object.values(rejectedByReason).reduce((sum, count) => sum + count, 0);
}

/** A count with a comma at every thousand. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

function countOf(state: ImportState): number {
  return state.accepted + rejectedCount(state);
}

function byteText(byteCount: number): string {
  const unit = byteCount < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(byteCount) / 10));
  return `${(byteCount / 1024 ** unit).toFixed(unit === 0 ? 0 : 1)} ${UNITS[unit]}`;
}
