/** The OpenAPI document as one page to read: no script, nothing from elsewhere, and all text escaped. */

import { createHash } from 'node:crypto';
import type {
  JsonSchema,
  OpenApiDocument,
  OpenApiOperation,
  OpenApiResponse,
  Reference,
} from './openapi-document.js';

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --mark: light-dark(#0a5a8a, #7cc7f2); }
body { background: Canvas; color: CanvasText; font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
a { color: var(--mark); }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { margin-top: 2.5rem; overflow-wrap: anywhere; }
code { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: break-word; }
h3 code, pre { background: var(--soft); padding: .15rem .4rem; border-radius: .25rem; }
pre { padding: .75rem; overflow-x: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); }
ul { padding-left: 1.25rem; }
`;

/** What the page may load: nothing but its own style. */
export const REFERENCE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256')
  .update(STYLE)
  .digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export function referencePage(document: OpenApiDocument): string {
  const { info, tags, components } = document;
  const entries = entriesOf(document);
  const sections = tags.map(({ name, description }) => {
    const own = entries.filter(({ operation }) => operation.tags.includes(name));
    return `<h2 id="${escaped(name)}">${escaped(titled(name))}</h2>
<p>${textHtml(description)}</p>
${own.map((entry) => operationHtml(document, entry)).join('')}`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(info.title)}: the API</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escaped(info.title)}: the API</h1>
<p>${textHtml(info.description)}</p>
<p>Version ${escaped(info.version)}. The same for machines: <a href="/openapi.json">openapi.json</a>.</p>
<nav aria-label="Contents"><ul>
${entries.map((entry) => `<li><a href="#${escaped(entry.operation.operationId)}"><code>${escaped(`${entry.method} ${entry.paths[0]}`)}</code></a></li>`).join('\n')}
<li><a href="#errors">Errors</a></li>
</ul></nav>
<h2 id="key">The key</h2>
<p>One of these is enough.</p>
<ul>${Object.values(components.securitySchemes).map(schemeHtml).join('')}</ul>
${sections.join('\n')}
<h2 id="errors">Errors</h2>
<p>All have one form:</p>
${schemaHtml(document, components.schemas.Error)}
${table('Errors', ['Status', 'Name', 'When'], Object.entries(components.responses).map(errorRow))}
</main>
</body>
</html>
`;
}

interface Entry {
  readonly method: string;
  /** Several where they share one description. */
  readonly paths: readonly string[];
  readonly operation: OpenApiOperation;
}

function entriesOf({ paths }: OpenApiDocument): Entry[] {
  const entries = new Map<OpenApiOperation['responses'], Entry>();
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const earlier = entries.get(operation.responses);
      entries.set(operation.responses, {
        method: method.toUpperCase(),
        paths: [...(earlier?.paths ?? []), path],
        operation: earlier?.operation ?? operation,
      });
    }
  }
  return [...entries.values()];
}

function headingHtml({ method, paths }: Entry): string {
  return paths.map((path) => `<code>${escaped(`${method} ${path}`)}</code>`).join(' or ');
}

function operationHtml(document: OpenApiDocument, entry: Entry): string {
  const { operationId, summary, description, parameters, requestBody, responses, security } = entry.operation;
  const parts = [
    `<h3 id="${escaped(operationId)}">${headingHtml(entry)}</h3>`,
    `<p>${textHtml(description === '' ? summary : description)}</p>`,
    `<p>${security.length === 0 ? 'Takes no key.' : 'Takes <a href="#key">a key</a>.'}</p>`,
  ];
  if (parameters.length > 0) {
    const rows = parameters.map(({ name, required, schema, description: text }) => [
      `<code>${escaped(name)}</code>`,
      required ? 'yes' : 'no',
      `${textHtml(text)}${valuesHtml(schema)}`,
    ]);
    parts.push(table(`Parameters of ${operationId}`, ['Parameter', 'Needed', 'Meaning'], rows));
  }
  if (requestBody !== undefined) {
    parts.push(`<p>Body: ${textHtml(requestBody.description)}</p>`);
    for (const [type, media] of Object.entries(requestBody.content))
      parts.push(`<p><code>${escaped(type)}</code></p>${schemaHtml(document, media.schema)}`);
  }
  const rows = Object.entries(responses).map(([status, value]) => {
    const answer = resolved<OpenApiResponse>(document, value);
    const isError = '$ref' in value;
    return [
      `<code>${escaped(status)}</code>`,
      textHtml(answer.description) + (isError ? '' : answerHtml(document, answer)),
      Object.keys(answer.headers ?? {})
        .map((name) => `<code>${escaped(name)}</code>`)
        .join(', '),
    ];
  });
  parts.push(table(`Answers of ${operationId}`, ['Status', 'Answer', 'Headers'], rows));
  return parts.join('\n');
}

function answerHtml(document: OpenApiDocument, { content }: OpenApiResponse): string {
  return Object.entries(content)
    .map(([type, { schema }]) => ` <code>${escaped(type)}</code>${schemaHtml(document, schema)}`)
    .join('');
}

/** Members as nested lists; nothing for a schema that says no more than its type. */
function schemaHtml(document: OpenApiDocument, reference: JsonSchema | Reference): string {
  const schema = resolved<JsonSchema>(document, reference);
  const { description, properties, items, anyOf, required } = schema as {
    description?: string;
    properties?: Record<string, JsonSchema>;
    items?: JsonSchema;
    anyOf?: JsonSchema[];
    required?: string[];
  };
  const text = description === undefined ? '' : ` ${textHtml(description)}`;
  if (properties !== undefined) {
    const members = Object.entries(properties).map(
      ([name, member]) =>
        `<li><code>${escaped(name)}</code> ${typeHtml(member)}${required?.includes(name) ? '' : ', may be absent'}${schemaHtml(document, member)}</li>`,
    );
    return `${text}<ul>${members.join('')}</ul>`;
  }
  if (items !== undefined) return `${text}${schemaHtml(document, items)}`;
  if (anyOf?.some((one) => one.properties !== undefined))
    return `${text}<ul>${anyOf.map((one) => `<li>${typeHtml(one)}${schemaHtml(document, one)}</li>`).join('')}</ul>`;
  return text + valuesHtml(schema);
}

function typeHtml(schema: JsonSchema): string {
  if (Array.isArray(schema.anyOf)) return schema.anyOf.map((one) => typeHtml(one as JsonSchema)).join(' or ');
  const { type } = schema;
  const words = Array.isArray(type) ? type.join(' or ') : typeof type === 'string' ? type : 'anything';
  return `<em>${escaped(words)}</em>`;
}

function valuesHtml({ enum: values, examples }: JsonSchema): string {
  const list = (word: string, of: readonly unknown[]) =>
    ` ${word} ${of.map((value) => `<code>${escaped(String(value))}</code>`).join(', ')}.`;
  if (Array.isArray(values)) return list('One of', values);
  return Array.isArray(examples) ? list('Such as', examples) : '';
}

function schemeHtml({ type, name, description, in: place }: Readonly<Record<string, string>>): string {
  const how = type === 'http' ? 'Authorization: Bearer …' : place === 'query' ? `?${name}=…` : `${name}: …`;
  return `<li><code>${escaped(how)}</code> ${textHtml(description)}</li>`;
}

function errorRow([name, { description, content }]: [string, OpenApiResponse]): string[] {
  const { allOf } = Object.values(content)[0].schema as { allOf: JsonSchema[] };
  const own = allOf[1] as {
    properties: { error: { properties: { code: { const: number }; status: { enum: string[] } } } };
  };
  const { code, status } = own.properties.error.properties;
  return [
    `<code>${code.const}</code>`,
    status.enum.map((one) => `<code>${escaped(one)}</code>`).join(', ') || escaped(name),
    textHtml(description),
  ];
}

/** Cells are HTML already. It may be wider than the page: the label tells what is scrolled by keyboard. */
function table(label: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  const body = rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('\n');
  return `<div class="scroll" role="region" tabindex="0" aria-label="${escaped(label)}"><table><thead><tr>${head.map((cell) => `<th scope="col">${escaped(cell)}</th>`).join('')}</tr></thead>\n<tbody>${body}</tbody></table></div>`;
}

function resolved<T extends object>(document: OpenApiDocument, value: T | Reference): T {
  if (!('$ref' in value)) return value;
  const [, , kind, name] = value.$ref.split('/');
  return (document.components as unknown as Record<string, Record<string, T>>)[kind][name];
}

/** Text with `code` in backquotes. */
function textHtml(text: string): string {
  return escaped(text).replace(/`([^`]*)`/g, '<code>$1</code>');
}

function titled(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
