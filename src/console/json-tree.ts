/** A JSON value as a tree that is opened branch by branch. Branches are made when they are opened. */

import { WrittenNumber } from './api-client.js';
import { element, visibleText } from './dom.js';

/** Branches with more members show so many at first. */
const MEMBERS_AT_A_TIME = 200;
/** Branches up to this depth, with no more members than that, are open from the start. */
const OPEN_DEPTH = 2;
const OPEN_MEMBERS = 12;
const TEXT_DEPTH = 64;

export function jsonTree(value: unknown): HTMLElement {
  if (!isBranch(value)) return element('ul', { class: 'tree' }, element('li', {}, leaf(value)));
  return members(value, 0);
}

function members(branch: object, depth: number): HTMLElement {
  const list = element('ul', { class: 'tree' });
  const all = Object.entries(branch);
  const isArray = Array.isArray(branch);
  let shownCount = 0;
  const showMore = () => {
    const next = all.slice(shownCount, shownCount + MEMBERS_AT_A_TIME);
    shownCount += next.length;
    list.append(...next.map(([name, value]) => member(name, isArray, value, depth)));
    if (shownCount === all.length) return;
    const more = element('button', { type: 'button' }, `Show more of ${all.length}`);
    const item = element('li', {}, more);
    more.addEventListener('click', () => {
      item.remove();
      showMore();
    });
    list.append(item);
  };
  showMore();
  return list;
}

function member(name: string, isIndex: boolean, value: unknown, depth: number): HTMLElement {
  const key = element('span', { class: isIndex ? 'index' : 'key' }, visibleText(name));
  if (!isBranch(value)) return element('li', {}, key, ': ', leaf(value));
  const count = Object.keys(value).length;
  const size = Array.isArray(value) ? `[${count}]` : `{${count}}`;
  if (count === 0) return element('li', {}, key, ': ', element('span', { class: 'size' }, size));
  const branch = element(
    'details',
    {},
    element('summary', {}, key, ' ', element('span', { class: 'size' }, size)),
  );
  const fill = () => {
    if (branch.childElementCount === 1) branch.append(members(value, depth + 1));
  };
  branch.addEventListener('toggle', fill);
  if (depth < OPEN_DEPTH && count <= OPEN_MEMBERS) {
    fill();
    branch.open = true;
  }
  return element('li', {}, branch);
}

function leaf(value: unknown): HTMLElement {
  if (typeof value === 'string') return element('span', { class: 'string' }, visibleText(value));
  const text = value instanceof WrittenNumber ? value.text : String(value);
  return element('span', { class: value === null || typeof value === 'boolean' ? 'word' : 'number' }, text);
}

function isBranch(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof WrittenNumber);
}

/** The value as JSON, numbers as they were written; what is nested deeper than anybody reads is left out. */
export function jsonText(value: unknown, depth = 0): string {
  if (value instanceof WrittenNumber) return value.text;
  if (!isBranch(value)) return JSON.stringify(value);
  if (depth === TEXT_DEPTH) return '…';
  if (Array.isArray(value)) return `[${value.map((member) => jsonText(member, depth + 1)).join(',')}]`;
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${jsonText(member, depth + 1)}`,
  );
  return `{${members.join(',')}}`;
}

declare global {
  interface JSON {
    /** Wherever a reviver is shown the source. */
    rawJSON(text: string): unknown;
  }
}

/** All of the value as JSON for people, numbers as they were written. */
export function writtenJson(value: unknown, indentation = 2): string {
  return JSON.stringify(
    value,
    (_, member) => (member instanceof WrittenNumber ? JSON.rawJSON(member.text) : member),
    indentation,
  );
}
