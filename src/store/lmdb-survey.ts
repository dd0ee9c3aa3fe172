/**
 * Walks LMDB's data file page by page: every page must be used by exactly one tree or be free, every tree
 * must be as deep and have as many pages and entries as it says, and every key must be in order and between
 * its branch's keys. So a flipped or missing byte outside of values is found; values carry checksums of their
 * own.
 */

import { compareBytes } from '../../engine/rows/row-order.js';
import { PageUses } from './lmdb-page-uses.js';
import {
  type BranchNode,
  damaged,
  type LeafNode,
  META_COUNT,
  type Meta,
  PageError,
  PageFile,
  type Tree,
  treeOf,
  viewOf,
} from './lmdb-pages.js';

/** Keys of a table, from `low` up to but without `high`, that can't be read; null is unbounded. */
export interface LostKeys {
  readonly table: string;
  readonly low: string | null;
  readonly high: string | null;
}

export interface Survey {
  /** What is wrong, one phrase each; empty when LMDB can be opened safely and has every key. */
  readonly problems: readonly string[];
  /** Keys that may have stood on pages that are damaged. */
  readonly lost: readonly LostKeys[];
  /** Whether what could be read may be the state before the last transaction. */
  readonly isOutdated: boolean;
  readonly tables: readonly string[];
}

/** Takes an entry; false when its value is not what was stored under its key. */
export type TakeEntry = (table: string, key: string, value: Uint8Array) => boolean;

/**
 * Tells each entry that can be read, table by table in order of key, and what can't be read. Throws the
 * system's error when the file can't be opened.
 */
export function surveyLmdb(path: string, take: TakeEntry): Survey {
  const file = new PageFile(path);
  try {
    return new Walk(file, take).run();
  } finally {
    file.close();
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

interface Counts {
  branches: number;
  leaves: number;
  overflows: number;
  entries: number;
  /** Entries that can't be read, of which it is known between which keys they stood. */
  lostEntries: number;
}

/** What is done with the entries of a tree. */
interface Visit {
  readonly label: string;
  readonly compare: (a: Uint8Array, b: Uint8Array) => number;
  /** False when the value is not what was stored. */
  readonly entry: (node: LeafNode, value: Uint8Array, page: number) => boolean;
  readonly lose: (low: Uint8Array | null, high: Uint8Array | null) => void;
  readonly counts: Counts;
  /** Bounds of the keys of pages that are damaged. */
  readonly damagedPages: (readonly [Uint8Array | null, Uint8Array | null])[];
}

/**
 * The last pages of a file need not be there while they are free: so many for each that is, and so many more.
 */
const PAGES_BEYOND_END = 16;
const MORE_PAGES_BEYOND_END = 65_536;

class Walk {
  readonly #file: PageFile;
  readonly #take: TakeEntry;
  readonly #problems: string[] = [];
  readonly #lost: LostKeys[] = [];
  readonly #tables: string[] = [];
  #uses = new PageUses(0);
  #transaction = 0;

  constructor(file: PageFile, take: TakeEntry) {
    this.#file = file;
    this.#take = take;
  }

  run(): Survey {
    const { meta, isOutdated } = this.#pickMeta(this.#file.metas());
    if (meta !== null) this.#walkAll(meta);
    return { problems: this.#problems, lost: this.#lost, isOutdated, tables: this.#tables };
  }

  /**
   * Transaction n writes meta page n % 2, and the root of its tree of names; so a wrong transaction number
   * shows in one of the two.
   */
  #pickMeta(metas: readonly (Meta | null)[]): { meta: Meta | null; isOutdated: boolean } {
    for (const [index, meta] of metas.entries()) {
      if (meta?.isOfFormat !== true) this.#problems.push(`page ${index}: it is no meta page of this format`);
      else if (!this.#isOwn(meta, index))
        this.#problems.push(`page ${index}: it is not of the transaction that it says`);
    }
    const own = metas.filter((meta, index): meta is Meta => meta !== null && this.#isOwn(meta, index));
    const [first, second] = own;
    if (own.length < META_COUNT) return { meta: first ?? null, isOutdated: true };
    if (Math.abs(first.transaction - second.transaction) > 1)
      this.#problems.push('pages 0 and 1: their transactions do not follow each other');
    return { meta: first.transaction > second.transaction ? first : second, isOutdated: false };
  }

  #isOwn({ transaction, main, lastPage }: Meta, index: number): boolean {
    if (transaction === 0) return main.root === null;
    if (transaction % META_COUNT !== index || main.root === null || main.root > lastPage) return false;
    return this.#file.transactionOf(main.root) === transaction;
  }

  #walkAll(meta: Meta): void {
    this.#transaction = meta.transaction;
    if (!(meta.lastPage < this.#file.pageCount * PAGES_BEYOND_END + MORE_PAGES_BEYOND_END)) {
      this.#problems.push('the number of the last page is impossible');
      this.#lost.push({ table: '*', low: null, high: null });
      return;
    }
    this.#uses = new PageUses(meta.lastPage + 1);
    this.#walkTree(meta.free, {
      label: 'the tree of free pages',
      compare: compareIntegers,
      entry: (_, value, page) => this.#uses.addFree(value, page),
      lose: () => {},
      counts: noCounts(),
      damagedPages: [],
    });
    const trees: { name: string; tree: Tree }[] = [];
    this.#walkTree(meta.main, {
      label: 'the tree of tables',
      compare: compareBytes,
      entry: ({ key, isTree }, value, page) => {
        if (!isTree) throw damaged(page, 'a table is not described as one');
        // LMDB's binding ends names with a zero.
        trees.push({ name: decoder.decode(key).replace(/\0$/, ''), tree: treeOf(page, value) });
        return true;
      },
      lose: () => this.#lost.push({ table: '*', low: null, high: null }),
      counts: noCounts(),
      damagedPages: [],
    });
    for (const { name, tree } of trees) this.#walkTable(name, tree);
    const unknown = this.#uses.firstUnknown();
    if (unknown >= 0) this.#problems.push(`page ${unknown}: nothing uses it, and it is not free`);
  }

  #walkTable(name: string, tree: Tree): void {
    this.#tables.push(name);
    this.#walkTree(tree, {
      label: `table ${name}`,
      compare: compareBytes,
      entry: ({ key, isTree }, value, page) => {
        if (isTree) throw damaged(page, 'a value is described as a table');
        return this.#take(name, decoder.decode(key), value);
      },
      lose: (low, high) => this.#lost.push({ table: name, low: textOf(low), high: textOf(high) }),
      counts: noCounts(),
      damagedPages: [],
    });
  }

  #walkTree(tree: Tree, visit: Visit): void {
    const problemCount = this.#problems.length;
    if (tree.root !== null) this.#walkPage(tree.root, tree.depth, null, null, visit);
    const { branches, leaves, overflows, entries, lostEntries } = visit.counts;
    const areCounted = entries + lostEntries === tree.entryCount;
    const isAsSaid =
      areCounted &&
      branches === tree.branchPageCount &&
      leaves === tree.leafPageCount &&
      overflows === tree.overflowPageCount;
    if (this.#problems.length > problemCount) {
      if (!areCounted) for (const [low, high] of visit.damagedPages) visit.lose(low, high);
    } else if (!isAsSaid) {
      this.#problems.push(`${visit.label}: it has other numbers of pages or entries than it says`);
      visit.lose(null, null);
    }
  }

  /** The keys of a page, and of all below it, lie between low and high. */
  #walkPage(
    page: number,
    depth: number,
    low: Uint8Array | null,
    high: Uint8Array | null,
    visit: Visit,
  ): void {
    try {
      if (depth < 1) throw damaged(page, 'it is deeper in its tree than it should be');
      if (depth === 1) this.#walkLeaf(page, low, high, visit);
      else this.#walkBranch(page, depth, low, high, visit);
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
      this.#problems.push(`${visit.label}, ${error.message}`);
      visit.lose(low, high);
    }
  }

  #walkBranch(
    page: number,
    depth: number,
    low: Uint8Array | null,
    high: Uint8Array | null,
    visit: Visit,
  ): void {
    this.#uses.assertUnused(page, 1);
    try {
      const nodes = this.#file.branch(page, this.#transaction);
      assertBranchOrder(page, nodes, low, high, visit);
      this.#uses.use(page, 1);
      visit.counts.branches += 1;
      for (const [i, { child }] of nodes.entries()) {
        const from = i === 0 ? low : nodes[i].key;
        this.#walkPage(child, depth - 1, from, nodes[i + 1]?.key ?? high, visit);
      }
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
      this.#problems.push(`${visit.label}, ${error.message}`);
      this.#walkRemains(page, depth, low, high, visit);
    }
  }

  /** Of a damaged branch whatever pages are of its tree beyond doubt. */
  #walkRemains(
    page: number,
    depth: number,
    low: Uint8Array | null,
    high: Uint8Array | null,
    visit: Visit,
  ): void {
    visit.damagedPages.push([low, high]);
    try {
      const children = this.#file.remainsOfBranch(page);
      this.#uses.use(page, 1);
      for (const child of children) this.#walkPage(child, depth - 1, low, high, visit);
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
    }
  }

  #walkLeaf(page: number, low: Uint8Array | null, high: Uint8Array | null, visit: Visit): void {
    this.#uses.assertUnused(page, 1);
    try {
      const nodes = this.#file.leaf(page, this.#transaction);
      assertOrder(page, nodes, low, high, visit);
      this.#uses.use(page, 1);
      visit.counts.leaves += 1;
      this.#takeNodes(nodes, page, low, high, visit);
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
      this.#problems.push(`${visit.label}, ${error.message}`);
      this.#takeRemains(page, low, high, visit);
    }
  }

  /** Of a damaged leaf whatever is what was stored; tells between which keys the rest stood. */
  #takeRemains(page: number, low: Uint8Array | null, high: Uint8Array | null, visit: Visit): void {
    visit.damagedPages.push([low, high]);
    try {
      this.#takeNodes(this.#file.remainsOfLeaf(page), page, low, high, visit);
      this.#uses.use(page, 1);
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
    }
  }

  #takeNodes(
    nodes: readonly (LeafNode | null)[],
    page: number,
    low: Uint8Array | null,
    high: Uint8Array | null,
    visit: Visit,
  ): void {
    const areSound = nodes.map((node) => node !== null && this.#takeNode(node, page, visit));
    let before = low;
    for (const [i, isSound] of areSound.entries()) {
      if (isSound) before = nodes[i]!.key;
      else {
        visit.counts.lostEntries += 1;
        const next = areSound.indexOf(true, i);
        visit.lose(before, next < 0 ? high : nodes[next]!.key);
      }
    }
    visit.counts.entries += areSound.filter((isSound) => isSound).length;
  }

  #takeNode(node: LeafNode, page: number, visit: Visit): boolean {
    try {
      return visit.entry(node, node.value ?? this.#overflowOf(node, visit), page);
    } catch (error) {
      if (!(error instanceof PageError) && !(error instanceof TypeError)) throw error;
      const what = error instanceof PageError ? error.message : `page ${page}: a key is no text`;
      this.#problems.push(`${visit.label}, ${what}`);
      return false;
    }
  }

  #overflowOf({ overflow }: LeafNode, visit: Visit): Uint8Array {
    const { firstPage, pageCount } = overflow;
    this.#uses.assertUnused(firstPage, pageCount);
    const value = this.#file.overflow(overflow, this.#transaction);
    this.#uses.use(firstPage, pageCount);
    visit.counts.overflows += pageCount;
    return value;
  }
}

/** A bound that is no text bounds nothing. */
function textOf(key: Uint8Array | null): string | null {
  try {
    return key && decoder.decode(key);
  } catch {
    return null;
  }
}

function noCounts(): Counts {
  return { branches: 0, leaves: 0, overflows: 0, entries: 0, lostEntries: 0 };
}

/** The first key of a branch is never looked at. */
function assertBranchOrder(
  page: number,
  nodes: readonly BranchNode[],
  low: Uint8Array | null,
  high: Uint8Array | null,
  { compare }: Visit,
): void {
  if (nodes.length < 2) throw damaged(page, 'it has fewer than two branches');
  for (let i = 1; i < nodes.length; i++) {
    const before = i === 1 ? low : nodes[i - 1].key;
    const isInOrder = before === null || compare(before, nodes[i].key) < 0;
    if (!isInOrder || (high !== null && compare(nodes[i].key, high) >= 0))
      throw damaged(page, 'its keys are out of order');
  }
}

function assertOrder(
  page: number,
  nodes: readonly LeafNode[],
  low: Uint8Array | null,
  high: Uint8Array | null,
  { compare }: Visit,
): void {
  for (const [i, { key }] of nodes.entries()) {
    const before = i === 0 ? low : nodes[i - 1].key;
    const order = before === null ? 1 : compare(key, before);
    const isInOrder = i === 0 ? order >= 0 : order > 0;
    if (!isInOrder || (high !== null && compare(key, high) >= 0))
      throw damaged(page, 'its keys are out of order');
  }
}

function compareIntegers(a: Uint8Array, b: Uint8Array): number {
  if (a.length !== 8 || b.length !== 8) return Number.NaN;
  return Number(viewOf(a).getBigUint64(0, true) - viewOf(b).getBigUint64(0, true));
}
