/**
 * The pages of LMDB's data file, read as bytes and each checked before it is believed. LMDB itself maps the
 * file and follows what stands there: a damaged page can crash the process, or silently be another page. Here
 * nothing is mapped.
 *
 *   page 0, 1    header │ meta: magic, version, …, two trees (free pages, names of tables), last page, transaction
 *   branch       header │ offsets u16 × n │ … free … │ nodes: child page, first key below it
 *   leaf         header │ offsets u16 × n │ … free … │ nodes: key, value or where its overflow pages are
 *   overflow     header │ value, through as many pages as it takes
 *   header       page u64 │ transaction u64 │ 0 u16 │ kind u16 │ lower u16, upper u16 or page count u32
 *
 * This is format 2 of the LMDB that lmdb 3.5 brings (see mdb.c there), on a little-endian machine with 64
 * bits.
 */

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

export const META_COUNT = 2;

const HEADER_BYTES = 24;
const NODE_BYTES = 8;
const OVERFLOW_REFERENCE_BYTES = 24;
const TREE_BYTES = 48;
const META_END = 168;

const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;
const BRANCH = 0x01;
const LEAF = 0x02;
const OVERFLOW = 0x04;
const META = 0x08;
const VALUE_ON_OVERFLOW = 0x01;
const VALUE_IS_TREE = 0x02;
/**
 * How Logring opens LMDB: one file without a folder of its own; keys of the tree of free pages are integers.
 */
const META_FLAGS = 0x4008;

const PAGE_SIZES = [4096, 8192, 16384, 32768];

/** A page is not what it should be; the message begins with which one. */
export class PageError extends Error {
  override name = 'PageError';
}

export interface Tree {
  readonly depth: number;
  readonly branchPageCount: number;
  readonly leafPageCount: number;
  readonly overflowPageCount: number;
  readonly entryCount: number;
  /** null: the tree is empty. */
  readonly root: number | null;
}

export interface Meta {
  /** Whether what never changes is as it should be. */
  readonly isOfFormat: boolean;
  readonly transaction: number;
  readonly lastPage: number;
  readonly free: Tree;
  readonly main: Tree;
}

export interface BranchNode {
  readonly key: Uint8Array;
  readonly child: number;
}

export interface LeafNode {
  readonly key: Uint8Array;
  /** A value in the page; null when it is on overflow pages. */
  readonly value: Uint8Array | null;
  readonly isTree: boolean;
  readonly overflow: { readonly firstPage: number; readonly pageCount: number; readonly byteCount: number };
}

const NO_OVERFLOW = { firstPage: 0, pageCount: 0, byteCount: 0 };

export class PageFile {
  readonly byteCount: number;
  readonly #descriptor: number;
  #pageBytes = 0;

  /** Throws the system's error when the file can't be opened. */
  constructor(path: string) {
    this.#descriptor = openSync(path, 'r');
    this.byteCount = fstatSync(this.#descriptor).size;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  get pageCount(): number {
    return Math.ceil(this.byteCount / this.#pageBytes);
  }

  /**
   * Both meta pages; null for one that the file is too short for. To be called first: it learns how large
   * pages are.
   */
  metas(): (Meta | null)[] {
    const first = this.#metaAt(0, 0);
    // Where the first is damaged, the second is looked for where most machines have it.
    this.#pageBytes =
      first !== null && PAGE_SIZES.includes(first.pageBytes) ? first.pageBytes : PAGE_SIZES[0];
    const second = this.#metaAt(1, this.#pageBytes);
    return [first, second].map(
      (meta) => meta && { ...meta, isOfFormat: meta.isOfFormat && meta.pageBytes === this.#pageBytes },
    );
  }

  /** The transaction that wrote a page; NaN where there is no such page. */
  transactionOf(page: number): number {
    const header = Buffer.alloc(HEADER_BYTES);
    const length = readSync(this.#descriptor, header, 0, HEADER_BYTES, page * this.#pageBytes);
    return length === HEADER_BYTES && u64(viewOf(header), 0) === page ? u64(viewOf(header), 8) : Number.NaN;
  }

  branch(page: number, maxTransaction: number): BranchNode[] {
    const { bytes, view, offsets } = this.#nodes(page, BRANCH, maxTransaction);
    const nodes = offsets.map((at) => branchNode(bytes, view, at));
    const lengths = nodes.map(({ key }) => NODE_BYTES + key.length);
    assertTiled(page, offsets, lengths, view.getUint16(22, true) + HEADER_BYTES, bytes.length);
    return nodes;
  }

  /** The pages that a damaged branch names, as far as that can be told. */
  remainsOfBranch(page: number): number[] {
    const bytes = this.#read(page, this.#pageBytes);
    const view = viewOf(bytes);
    const start = HEADER_BYTES + boundsOf(page, view, bytes.length).upper;
    return offsetsOf(view)
      .filter((at) => at >= start && keyEndOf(view, at) < Infinity)
      .map((at) => branchNode(bytes, view, at).child);
  }

  leaf(page: number, maxTransaction: number): LeafNode[] {
    const { bytes, view, offsets } = this.#nodes(page, LEAF, maxTransaction);
    const nodes = offsets.map((at) => leafNode(page, bytes, view, at));
    const lengths = nodes.map(
      ({ key, value }) => NODE_BYTES + key.length + (value?.length ?? OVERFLOW_REFERENCE_BYTES),
    );
    assertTiled(page, offsets, lengths, view.getUint16(22, true) + HEADER_BYTES, bytes.length);
    return nodes;
  }

  /**
   * What can be told apart in a damaged leaf, in its order; null for a node that can't. None when its bounds
   * are damaged.
   */
  remainsOfLeaf(page: number): (LeafNode | null)[] {
    const bytes = this.#read(page, this.#pageBytes);
    const view = viewOf(bytes);
    const start = HEADER_BYTES + boundsOf(page, view, bytes.length).upper;
    return offsetsOf(view).map((at) => {
      try {
        return at < start ? null : leafNode(page, bytes, view, at);
      } catch (error) {
        if (!(error instanceof PageError)) throw error;
        return null;
      }
    });
  }

  /** A value that stands on pages of its own. */
  overflow({ firstPage, pageCount, byteCount }: LeafNode['overflow'], maxTransaction: number): Uint8Array {
    const needed = Math.ceil((HEADER_BYTES + byteCount) / this.#pageBytes);
    if (pageCount < needed || !Number.isSafeInteger(pageCount))
      throw damaged(firstPage, 'its value is longer than its pages');
    const bytes = this.#read(firstPage, HEADER_BYTES + byteCount);
    const view = viewOf(bytes);
    assertHeader(firstPage, view, OVERFLOW, maxTransaction);
    if (view.getUint32(20, true) !== pageCount)
      throw damaged(firstPage, 'it has another number of pages than its key says');
    return bytes.subarray(HEADER_BYTES);
  }

  #nodes(page: number, kind: number, maxTransaction: number) {
    const bytes = this.#read(page, this.#pageBytes);
    const view = viewOf(bytes);
    assertHeader(page, view, kind, maxTransaction);
    const { upper } = boundsOf(page, view, bytes.length);
    const offsets = offsetsOf(view);
    for (const at of offsets) {
      if (at < HEADER_BYTES + upper || keyEndOf(view, at) > bytes.length)
        throw damaged(page, 'a node is outside of its bounds');
    }
    return { bytes, view, offsets };
  }

  #read(page: number, byteCount: number): Uint8Array {
    const position = page * this.#pageBytes;
    if (!(position + byteCount <= this.byteCount)) throw damaged(page, 'it is behind the end of the file');
    const bytes = Buffer.allocUnsafeSlow(byteCount);
    if (readSync(this.#descriptor, bytes, 0, byteCount, position) < byteCount)
      throw damaged(page, 'it could not be read whole');
    return bytes;
  }

  #metaAt(index: number, position: number): (Meta & { readonly pageBytes: number }) | null {
    const bytes = Buffer.alloc(META_END);
    if (readSync(this.#descriptor, bytes, 0, META_END, position) < META_END) return null;
    const view = viewOf(bytes);
    const pageBytes = view.getUint32(48, true);
    const isOfFormat =
      u64(view, 0) === index &&
      view.getUint16(18, true) === META &&
      view.getUint32(24, true) === MAGIC &&
      view.getUint32(28, true) === DATA_VERSION &&
      u64(view, 32) === 0 &&
      view.getUint16(52, true) === META_FLAGS &&
      view.getUint16(100, true) === 0;
    return {
      isOfFormat,
      pageBytes,
      free: treeAt(view, 48),
      main: treeAt(view, 96),
      lastPage: u64(view, 144),
      transaction: u64(view, 152),
    };
  }
}

function boundsOf(page: number, view: DataView, pageBytes: number): { lower: number; upper: number } {
  const lower = view.getUint16(20, true);
  const upper = view.getUint16(22, true);
  if (lower > upper || lower % 2 !== 0 || HEADER_BYTES + upper > pageBytes)
    throw damaged(page, 'its bounds are impossible');
  return { lower, upper };
}

/** Where the nodes of a page with possible bounds begin. */
function offsetsOf(view: DataView): number[] {
  const count = view.getUint16(20, true) / 2;
  return Array.from({ length: count }, (_, i) => HEADER_BYTES + view.getUint16(HEADER_BYTES + 2 * i, true));
}

/** Infinity where there is no room for a node. */
function keyEndOf(view: DataView, at: number): number {
  return at + NODE_BYTES > view.byteLength ? Infinity : at + NODE_BYTES + view.getUint16(at + 6, true);
}

function branchNode(bytes: Uint8Array, view: DataView, at: number): BranchNode {
  const child =
    view.getUint16(at, true) +
    view.getUint16(at + 2, true) * 2 ** 16 +
    view.getUint16(at + 4, true) * 2 ** 32;
  return { key: bytes.subarray(at + NODE_BYTES, keyEndOf(view, at)), child };
}

function leafNode(page: number, bytes: Uint8Array, view: DataView, at: number): LeafNode {
  const keyEnd = keyEndOf(view, at);
  if (keyEnd > bytes.length) throw damaged(page, 'a key goes beyond its end');
  const byteCount = view.getUint16(at, true) + view.getUint16(at + 2, true) * 2 ** 16;
  const flags = view.getUint16(at + 4, true);
  if (flags > VALUE_IS_TREE) throw damaged(page, 'a node has unknown flags');
  const isOutside = flags === VALUE_ON_OVERFLOW;
  const end = keyEnd + (isOutside ? OVERFLOW_REFERENCE_BYTES : byteCount);
  if (end > bytes.length) throw damaged(page, 'a node goes beyond its end');
  return {
    key: bytes.subarray(at + NODE_BYTES, keyEnd),
    value: isOutside ? null : bytes.subarray(keyEnd, end),
    isTree: flags === VALUE_IS_TREE,
    overflow: isOutside
      ? { firstPage: u64(view, keyEnd), pageCount: u64(view, keyEnd + 16), byteCount }
      : NO_OVERFLOW,
  };
}

/** The tree that a value of the tree of names describes. */
export function treeOf(page: number, value: Uint8Array): Tree {
  if (value.length !== TREE_BYTES) throw damaged(page, 'a table is not described in the length it should be');
  const view = viewOf(value);
  if (view.getUint32(0, true) !== 0 || view.getUint16(4, true) !== 0)
    throw damaged(page, 'a table has unknown flags');
  return treeAt(view, 0);
}

export function damaged(page: number, what: string): PageError {
  return new PageError(`page ${page}: ${what}`);
}

function treeAt(view: DataView, at: number): Tree {
  const hasRoot =
    view.getUint32(at + 40, true) !== 0xffffffff || view.getUint32(at + 44, true) !== 0xffffffff;
  return {
    depth: view.getUint16(at + 6, true),
    branchPageCount: u64(view, at + 8),
    leafPageCount: u64(view, at + 16),
    overflowPageCount: u64(view, at + 24),
    entryCount: u64(view, at + 32),
    root: hasRoot ? u64(view, at + 40) : null,
  };
}

function assertHeader(page: number, view: DataView, kind: number, maxTransaction: number): void {
  if (u64(view, 0) !== page) throw damaged(page, 'it says that it is another page');
  const transaction = u64(view, 8);
  if (transaction < 1 || transaction > maxTransaction)
    throw damaged(page, 'its transaction is not a past one');
  if (view.getUint16(16, true) !== 0 || view.getUint16(18, true) !== kind)
    throw damaged(page, 'it is of another kind than it should be');
}

/**
 * Nodes fill the page from `start` to its end, each beginning at an even place; so no length can be wrong
 * unseen.
 */
function assertTiled(
  page: number,
  offsets: readonly number[],
  lengths: readonly number[],
  start: number,
  end: number,
): void {
  const order = offsets.map((_, i) => i).sort((a, b) => offsets[a] - offsets[b]);
  let at = start;
  for (const i of order) {
    if (offsets[i] !== at) throw damaged(page, 'its nodes do not lie side by side');
    at += lengths[i] + (lengths[i] % 2);
  }
  if (at !== end) throw damaged(page, 'its nodes do not fill it to its end');
}

/** Beyond 2^53 it is not exact: too large for anything here. */
function u64(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
