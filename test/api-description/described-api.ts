/**
 * Holds answers against the OpenAPI document: what it doesn't describe, or describes otherwise, is a problem.
 */

import { Ajv2020 } from 'ajv/dist/2020.js';
import type {
  OpenApiDocument,
  OpenApiOperation,
  OpenApiResponse,
  Reference,
} from '../../src/http/description/openapi-document.js';

export interface ReceivedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** What the servers add by themselves, CORS, and packing. */
const UNDESCRIBED_HEADERS = [
  'connection',
  'content-encoding',
  'content-length',
  'content-security-policy',
  'content-type',
  'date',
  'keep-alive',
  'referrer-policy',
  'transfer-encoding',
  'uwebsockets',
  'vary',
  'x-content-type-options',
];

export type DescribedMethod = 'get' | 'post' | 'delete';

export class DescribedApi {
  readonly document: OpenApiDocument;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, formats: { 'date-time': true } });

  constructor(document: OpenApiDocument) {
    this.document = document;
    this.#ajv.addSchema(document, 'document');
  }

  /** What of an answer is not as described; none: all is. */
  problemsOf(method: DescribedMethod, path: string, answer: ReceivedAnswer): string[] {
    const operation = this.document.paths[path]?.[method];
    if (operation === undefined) return [`${method} ${path} is not described`];
    const described = operation.responses[answer.status];
    if (described === undefined) return [`${answer.status} is not described: ${answer.body.slice(0, 200)}`];
    const pointer =
      '$ref' in described ? described.$ref : pointerTo(['paths', path, method, 'responses', answer.status]);
    const response = this.#resolved(described);
    return [...this.#headerProblems(response, answer), ...this.#bodyProblems(pointer, response, answer)];
  }

  operations(): { path: string; method: DescribedMethod; operation: OpenApiOperation }[] {
    return Object.entries(this.document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({
        path,
        method: method as DescribedMethod,
        operation,
      })),
    );
  }

  #bodyProblems(pointer: string, { content }: OpenApiResponse, { headers, body }: ReceivedAnswer): string[] {
    const type = (headers.get('content-type') ?? '').split(';')[0];
    if (content[type] === undefined) return [`the content type ${type} is not described`];
    const value: unknown = type === 'application/json' ? JSON.parse(body) : body;
    const reference = `document${pointer}/content/${escapedForPointer(type)}/schema`;
    const validate = this.#ajv.getSchema(reference) ?? this.#ajv.compile({ $ref: reference });
    return validate(value) ? [] : [`${this.#ajv.errorsText(validate.errors)}: ${body.slice(0, 300)}`];
  }

  #headerProblems({ headers = {} }: OpenApiResponse, answer: ReceivedAnswer): string[] {
    const described = new Map(Object.entries(headers).map(([name, header]) => [name.toLowerCase(), header]));
    return [...answer.headers].flatMap(([name, value]) => {
      if (UNDESCRIBED_HEADERS.includes(name)) return [];
      const header = described.get(name);
      if (header === undefined) return [`the header ${name} is not described`];
      const { schema } = this.#resolved(header);
      const typed = schema.type === 'integer' ? Number(value) : value;
      return this.#ajv.validate(schema, typed) ? [] : [`the header ${name} is ${value}`];
    });
  }

  #resolved<T extends object>(value: T | Reference): T {
    if (!('$ref' in value)) return value;
    const [, , kind, name] = value.$ref.split('/');
    return (this.document.components as unknown as Record<string, Record<string, T>>)[kind][name];
  }
}

function pointerTo(steps: readonly (string | number)[]): string {
  return `#${steps.map((step) => `/${escapedForPointer(String(step))}`).join('')}`;
}

function escapedForPointer(step: string): string {
  return step.replaceAll('~', '~0').replaceAll('/', '~1');
}
