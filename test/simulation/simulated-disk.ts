/**
 * A disk in memory that keeps apart what a program wrote and what it made durable, so that a power cut can
 * take away or tear what was not synced: bytes of files, and names in folders, each for itself and in no
 * order.
 *
 *   file    synced ═════════╪═ written ─ ─ ─    a cut leaves: ═════════╪═ some ∅∅ so┊     any length, with holes of zeros
 *           a sync that failed:    ═════════╪∅∅∅∅∅∅∅∅∅╪ written       it can be read, and no later sync writes it
 *   name    [durable, then, then, now]          a cut leaves any one of them
 */

import { dirname } from 'node:path';
import type { Random } from '../../src/demo/random.js';
import type { Disk, FolderList } from '../../src/store/disk/disk.js';
import { ArmedError, type Faults, systemError } from './faults.js';

/** Contents are never changed in place. */
interface File {
  content: Uint8Array;
  synced: Uint8Array;
  /** The length of what `content` and `synced` have in common. */
  stableBytes: number;
  /** [start, end) of what a sync has failed to write: the system takes it for written. */
  unwritten: readonly [number, number] | null;
}

type Entry = File | 'folder' | null;

export class SimulatedDisk {
  /** By path: what stood there since its folder was synced last, the newest last. */
  readonly #entries = new Map<string, Entry[]>();

  /** The folders exist, durably. */
  constructor(folders: readonly string[]) {
    for (const folder of ['/', ...folders]) this.#entries.set(folder, ['folder']);
  }

  /** All files, with their lengths. */
  files(): Map<string, number> {
    const files = new Map<string, number>();
    for (const [path, states] of this.#entries) {
      const entry = states.at(-1)!;
      if (entry !== null && entry !== 'folder') files.set(path, entry.content.length);
    }
    return files;
  }

  folders(): string[] {
    return [...this.#entries].filter(([, states]) => states.at(-1) === 'folder').map(([path]) => path);
  }

  entry(path: string): Entry {
    return this.#entries.get(path)?.at(-1) ?? null;
  }

  setEntry(path: string, entry: Entry): void {
    const states = this.#entries.get(path);
    if (states === undefined) this.#entries.set(path, [null, entry]);
    else states.push(entry);
  }

  syncFolder(folder: string): void {
    for (const [path, states] of this.#entries) {
      if (dirname(path) !== folder || states.length === 1) continue;
      const now = states.at(-1)!;
      if (now === null) this.#entries.delete(path);
      else this.#entries.set(path, [now]);
    }
  }

  /** The power is cut, and comes back. */
  cutPower(random: Random): void {
    const paths = [...this.#entries.keys()].sort();
    for (const path of paths) {
      const states = this.#entries.get(path)!;
      const isHeld = this.#entries.get(dirname(path))?.[0] === 'folder' || dirname(path) === '/';
      const entry = isHeld ? random.pick(states) : null;
      if (entry === null) this.#entries.delete(path);
      else this.#entries.set(path, [entry]);
      if (entry !== null && entry !== 'folder') survive(entry, random);
    }
  }
}

/** What a power cut leaves of a file. */
function survive(file: File, random: Random): void {
  const { content, synced, stableBytes } = file;
  if (content !== synced) {
    const wasNotCut = stableBytes < synced.length && random.chance(0.5);
    file.content = wasNotCut ? synced : torn(content, stableBytes, random);
  }
  if (file.unwritten !== null) {
    const [start, end] = file.unwritten;
    file.content = file.content.slice();
    file.content.fill(0, start, end);
    file.unwritten = null;
  }
  file.synced = file.content;
  file.stableBytes = file.content.length;
}

function torn(content: Uint8Array, stableBytes: number, random: Random): Uint8Array {
  const length = random.chance(0.3) ? content.length : random.between(stableBytes, content.length);
  const left = content.slice(0, length);
  if (length > stableBytes && random.chance(0.4)) {
    const holeStart = random.between(stableBytes, length - 1);
    left.fill(0, holeStart, random.between(holeStart + 1, length));
  }
  return left;
}

/** The disk as one thread of one life sees it. */
export class DiskOfLife implements Disk {
  readonly #disk: SimulatedDisk;
  readonly #faults: Faults;
  readonly #open = new Map<number, File>();
  readonly #pause: () => Promise<void>;
  #nextDescriptor = 3;

  /** `pause`: before each file that is synced, or removed, while others come between. */
  constructor(disk: SimulatedDisk, faults: Faults, pause: () => Promise<void> = async () => undefined) {
    this.#disk = disk;
    this.#faults = faults;
    this.#pause = pause;
  }

  open(path: string, flags: 'r' | 'a' | 'wx+'): number {
    return this.#faults.run(flags === 'r' ? 'open-read' : 'open', (part) => {
      let file = this.#disk.entry(path);
      if (file === 'folder') throw systemError('EISDIR', path);
      if (file !== null && flags === 'wx+') throw systemError('EEXIST', path);
      if (file === null) {
        if (flags === 'r') throw systemError('ENOENT', path);
        if (this.#disk.entry(dirname(path)) !== 'folder') throw systemError('ENOENT', path);
        file = { content: new Uint8Array(0), synced: new Uint8Array(0), stableBytes: 0, unwritten: null };
        if (part > 0.5) this.#disk.setEntry(path, file);
      }
      this.#open.set(this.#nextDescriptor, file);
      return this.#nextDescriptor++;
    });
  }

  close(descriptor: number): void {
    this.#fileOf(descriptor);
    this.#open.delete(descriptor);
  }

  read(descriptor: number, into: Uint8Array, byteCount: number, position: number): number {
    return this.#faults.run('read', () => {
      const { content } = this.#fileOf(descriptor);
      const bytes = content.subarray(position, position + byteCount);
      into.set(bytes);
      return bytes.length;
    });
  }

  write(descriptor: number, bytes: Uint8Array, from: number): number {
    return this.#faults.run('write', (part) => {
      const file = this.#fileOf(descriptor);
      const taken = Math.max(1, Math.floor(part * (bytes.length - from)));
      const content = new Uint8Array(file.content.length + taken);
      content.set(file.content);
      content.set(bytes.subarray(from, from + taken), file.content.length);
      file.content = content;
      return taken;
    });
  }

  overwrite(path: string, bytes: Uint8Array, position: number): void {
    for (let done = 0; done < bytes.length; )
      done += this.#faults.run('write', (part) => {
        const taken = Math.max(1, Math.floor(part * (bytes.length - done)));
        this.#overwrite(path, bytes.subarray(done, done + taken), position + done);
        return taken;
      });
  }

  #overwrite(path: string, bytes: Uint8Array, position: number): void {
    const file = this.#disk.entry(path);
    if (file === null || file === 'folder') throw systemError('ENOENT', path);
    const content = file.content.slice();
    content.set(bytes, position);
    if (Buffer.compare(content, file.content) !== 0) throw new Error(`${path} is overwritten by other bytes`);
    const [start, end] = file.unwritten ?? [position, position];
    if (start < position) throw new Error(`${path} is not overwritten from where it is not written`);
    const from = Math.min(end, position + bytes.length);
    if (from > start) file.stableBytes = Math.min(file.stableBytes, start);
    file.unwritten = from < end ? [from, end] : null;
  }

  sync(descriptor: number): void {
    const file = this.#fileOf(descriptor);
    this.#syncContent(file, file.content);
  }

  /** What the file had when the sync began, and has still. */
  #syncContent(file: File, began: Uint8Array): void {
    const content = began.subarray(0, Math.min(began.length, file.content.length));
    try {
      this.#faults.run('sync', (part) => {
        if (part < 0.5) return;
        file.synced = content;
        file.stableBytes = content.length;
      });
    } catch (error) {
      if (error instanceof ArmedError) this.#leaveUnwritten(file);
      throw error;
    }
  }

  #leaveUnwritten(file: File): void {
    const start = Math.min(file.stableBytes, file.unwritten?.[0] ?? Infinity);
    if (start < file.content.length) file.unwritten = [start, file.content.length];
  }

  async syncAll(descriptors: readonly number[]): Promise<void> {
    const files = descriptors.map((descriptor) => this.#fileOf(descriptor));
    const began = files.map(({ content }) => content);
    for (const [i, file] of files.entries()) {
      await this.#pause();
      this.#syncContent(file, began[i]);
    }
  }

  syncFolder(folder: string): void {
    this.#faults.run('sync-folder', (part) => {
      if (this.#disk.entry(folder) !== 'folder') throw systemError('ENOENT', folder);
      if (part > 0.5) this.#disk.syncFolder(folder);
    });
  }

  makeFolder(folder: string): boolean {
    if (this.#disk.entry(folder) === 'folder') return false;
    if (this.#disk.entry(dirname(folder)) !== 'folder') throw systemError('ENOENT', folder);
    this.#faults.run('make-folder', (part) => {
      if (part > 0.5) this.#disk.setEntry(folder, 'folder');
    });
    return true;
  }

  byteCount(path: string): number | null {
    const entry = this.#disk.entry(path);
    return entry === null || entry === 'folder' ? null : entry.content.length;
  }

  rename(from: string, to: string): void {
    this.#faults.run('rename', (part) => {
      const file = this.#disk.entry(from);
      if (file === null || file === 'folder') throw systemError('ENOENT', from);
      if (part < 0.5) return;
      this.#disk.setEntry(to, file);
      this.#disk.setEntry(from, null);
    });
  }

  link(from: string, to: string): void {
    this.#faults.run('link', (part) => {
      const file = this.#disk.entry(from);
      if (file === null || file === 'folder') throw systemError('ENOENT', from);
      if (this.#disk.entry(to) !== null) throw systemError('EEXIST', to);
      if (part > 0.5) this.#disk.setEntry(to, file);
    });
  }

  /** Nobody else can reach them. */
  identity(path: string): string | null {
    return this.#disk.entry(path) === null ? null : path;
  }

  truncate(named: string | number, byteCount: number): void {
    this.#faults.run('truncate', (part) => {
      const file = typeof named === 'string' ? this.#disk.entry(named) : this.#fileOf(named);
      if (file === null || file === 'folder') throw systemError('ENOENT', String(named));
      if (part < 0.5) return;
      file.content = file.content.slice(0, byteCount);
      file.stableBytes = Math.min(file.stableBytes, byteCount);
      if (file.unwritten !== null) {
        const [start, end] = file.unwritten;
        file.unwritten = start < byteCount ? [start, Math.min(end, byteCount)] : null;
      }
    });
  }

  remove(path: string): void {
    this.#faults.run('remove', (part) => {
      if (this.#disk.entry(path) !== null && part > 0.5) this.#disk.setEntry(path, null);
    });
  }

  async removeLater(path: string): Promise<void> {
    await this.#pause();
    this.remove(path);
  }

  /** A full disk is an error that is armed, and passes. */
  freeBytes(): number {
    return 2 ** 40;
  }

  list(folder: string): FolderList {
    const below = (paths: Iterable<string>): string[] =>
      [...paths].filter((path) => `${path}/`.startsWith(`${folder}/`));
    return { files: below(this.#disk.files().keys()), folders: below(this.#disk.folders()) };
  }

  #fileOf(descriptor: number): File {
    const file = this.#open.get(descriptor);
    if (file === undefined) throw systemError('EBADF', String(descriptor));
    return file;
  }
}
