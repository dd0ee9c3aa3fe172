/**
 * The house rules that a compiler does not enforce: which way imports point, and where the outside world may
 * enter.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** The checkout: the first folder above this file that has a package.json. */
function findRoot(directory: string): string {
  return readdirSync(directory).includes('package.json') ? directory : findRoot(dirname(directory));
}
const root = findRoot(dirname(fileURLToPath(import.meta.url)));

interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly string[];
}

function sources(layer: string): SourceFile[] {
  return readdirSync(join(root, layer), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => {
      const path = `${layer}/${name}`;
      const text = readFileSync(join(root, path), 'utf8');
      const imports = [...text.matchAll(/\b(?:from|import)\s*\(?\s*'([^'\s]+)'/g)].map((match) => match[1]);
      return { path, text, imports };
    });
}

/** The layer that a relative import leads to, or the package's name. */
function target(file: SourceFile, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier.startsWith('node:') ? 'node' : specifier;
  return relative(root, join(root, dirname(file.path), specifier)).split('/')[0];
}

function violations(layer: string, allowed: (target: string, file: SourceFile) => boolean): string[] {
  return sources(layer).flatMap((file) =>
    file.imports
      .filter((specifier) => !allowed(target(file, specifier), file))
      .map((specifier) => `${file.path} imports ${specifier}`),
  );
}

test('engine imports its own files and data-structure libraries only', () => {
  expect(sources('engine').length).toBeGreaterThan(10);
  expect(violations('engine', (to) => to === 'engine' || to === 're2js')).toEqual([]);
});

test('ingest imports itself and engine, never src', () => {
  expect(violations('ingest', (to) => !['src', 'test', 'bench'].includes(to))).toEqual([]);
});

test('no module of a worker waits while it is loaded: Node 22 crashes when the worker is ended then', () => {
  const waiting = ['engine', 'ingest', 'src']
    .flatMap(sources)
    .filter(({ text }) => /^(?=\S).*\bawait /m.test(text));
  expect(waiting.map(({ path }) => path)).toEqual([]);
});

test('src imports neither tests nor benches', () => {
  expect(violations('src', (to) => !['test', 'bench'].includes(to))).toEqual([]);
});

test('kafkajs is imported by ingest/kafka only', () => {
  const importers = ['engine', 'ingest', 'src']
    .flatMap(sources)
    .filter((file) => file.imports.some((specifier) => specifier.startsWith('kafkajs')))
    .map((file) => file.path);
  expect(importers.length).toBeGreaterThan(0);
  expect(importers.filter((path) => !path.startsWith('ingest/kafka/'))).toEqual([]);
});

test('engine knows no clock, timer, chance, environment, log or process', () => {
  const outside =
    /Date\.now|new Date\(\)|performance\.|setTimeout|setInterval|setImmediate|Math\.random|process\.[a-z]|console\.|require\(/;
  const found = sources('engine')
    .filter((file) => outside.test(file.text))
    .map((file) => `${file.path}: ${outside.exec(file.text)?.[0]}`);
  expect(found).toEqual([]);
});

test('engine knows no globals of Node', () => {
  const globals =
    /(?<![.#\w'"`/-])(?:Buffer|process|global|__dirname|__filename|queueMicrotask|structuredClone|fetch)\b(?!\s*[:?]\s)/;
  const found = sources('engine').flatMap(({ path, text }) => {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*|'[^'\n]*'/g, '');
    const match = globals.exec(code);
    return match === null ? [] : [`${path}: ${match[0]}`];
  });
  expect(found).toEqual([]);
});

test('the real clock is read in src/system-clock.ts only, and in the browser in its clock.ts', () => {
  const found = ['engine', 'ingest', 'src']
    .flatMap(sources)
    .filter((file) => /Date\.now|performance\.now|new Date\(\)|hrtime/.test(file.text))
    .map((file) => file.path);
  expect(found.sort()).toEqual(['src/console/clock.ts', 'src/system-clock.ts']);
});

test('nothing is raced against a promise that may stay pending for long: a Latch lets go of what lost', () => {
  const racing = ['engine', 'ingest', 'src']
    .flatMap(sources)
    .filter((file) => /Promise\.race\(/.test(file.text))
    .map((file) => file.path);
  expect(racing).toEqual([]);
});

test('built-in modules are imported by their node: names', () => {
  const found = ['engine', 'ingest', 'src', 'bench']
    .flatMap(sources)
    .flatMap((file) =>
      file.imports.filter((name) => builtinModules.includes(name)).map((name) => `${file.path}: ${name}`),
    );
  expect(found).toEqual([]);
});

test('the console makes elements of names and text only, never of markup, and runs no text', () => {
  const dangerous =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTML|srcdoc|\beval\b|\bFunction\(|javascript:|localStorage|document\.cookie/;
  const files = sources('src').filter(({ path }) => path.startsWith('src/console/'));
  expect(files.length).toBeGreaterThan(10);
  expect(files.filter(({ text }) => dangerous.test(text)).map(({ path }) => path)).toEqual([]);
});

test('the console imports its own files and the chart library only', () => {
  const found = sources('src')
    .filter(({ path }) => path.startsWith('src/console/'))
    .flatMap(({ path, imports }) =>
      imports
        .filter((name) => !/^\.\/[a-z-]+\.js$/.test(name) && name !== 'uplot')
        .map((name) => `${path}: ${name}`),
    );
  expect(found).toEqual([]);
});
