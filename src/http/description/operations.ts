/** The operations of the API: where they are, what they take and what they answer. */

import type { z } from 'zod';
import { POST_MEMORY_COUNT, POST_MEMORY_MS } from '../../../ingest/limits.js';
import { ALARM_PATHS } from '../alarms-api.js';
import { INGEST_PATH, QUERY_PATH_PREFIX } from '../api.js';
import { FUNCTIONS_PATH, functionsCall, PROJECTS_PATH, STATUS_PATH } from '../console/console-api.js';
import { DEAD_LETTERS_PATH, deadLettersCall } from '../dead-letters-api.js';
import type { ErrorCode } from '../errors.js';
import { ingestCall } from '../ingest/ingest-parameters.js';
import { IDEMPOTENCY_KEY_LENGTH_LIMIT } from '../limits.js';
import { INCOMPLETE_HEADER } from '../query/incomplete.js';
import type { ServedEndpoint } from '../query/query-api.js';
import { STALE_HEADER } from '../query/stale.js';
import { releaseCall, SNAPSHOT_PATH } from '../snapshot-api.js';
import { jsonSchemaOf } from './json-schema.js';
import type {
  JsonSchema,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiPath,
  OpenApiResponse,
} from './openapi-document.js';
import {
  bodyReference,
  errorReference,
  type HeaderName,
  JSON_TYPE,
  jsonResponse,
  response,
} from './responses.js';

export interface DescribedService {
  readonly version: string;
  /** Those that are not turned off. */
  readonly endpoints: readonly Pick<ServedEndpoint, 'id' | 'endpoint'>[];
  /** The logs that entries are posted to, by their topics. */
  readonly sourceNames: readonly string[];
}

const LINES_TYPE = 'application/x-ndjson';

export const SECURITY_SCHEMES = {
  header: { type: 'apiKey', in: 'header', name: 'X-API-KEY', description: 'The key as a header.' },
  bearer: { type: 'http', scheme: 'bearer', description: 'The key as a bearer token.' },
  query: {
    type: 'apiKey',
    in: 'query',
    name: 'api_key',
    description: 'The key as a parameter; it ends up in the logs of proxies, so prefer a header.',
  },
};
/** One of them is enough. */
const WITH_KEY = Object.keys(SECURITY_SCHEMES).map((name) => ({ [name]: [] }));

export const TAGS = {
  query: 'The saved queries. HEAD is answered like GET, without the body.',
  ingest: 'Taking logs in over HTTP, where they do not come from Kafka.',
  console: 'What the web console asks beside the queries.',
  operation: 'For operators and their tools.',
};
type Tag = keyof typeof TAGS;

interface Sketch {
  readonly operationId: string;
  /** For operators, where it says none. */
  readonly tag?: Tag;
  readonly summary: string;
  readonly description: string;
  /** It does where it says nothing. */
  readonly needsKey?: boolean;
  readonly parameters?: readonly OpenApiParameter[];
  readonly requestBody?: NonNullable<OpenApiOperation['requestBody']>;
  readonly answers: Readonly<Record<string, OpenApiResponse>>;
  readonly errors: readonly ErrorCode[];
}

const ANSWER_HEADERS: readonly HeaderName[] = [STALE_HEADER, INCOMPLETE_HEADER];

const CACHED_TEXT =
  ' The answer may come from the result cache, with its Age; `Cache-Control: no-cache` asks for a fresh one.';

export function pathsOf(service: DescribedService): Record<string, OpenApiPath> {
  return { ...queryPaths(service), ...ingestPaths(service), ...consolePaths(), ...operationPaths() };
}

/** Each endpoint by its name and by its id, with one description. */
function queryPaths({ endpoints }: DescribedService): Record<string, OpenApiPath> {
  const paths: Record<string, OpenApiPath> = {};
  for (const { id, endpoint } of endpoints) {
    const { name, isCached, parameters } = endpoint;
    const { operationId, bodyName, text } = endpoint.description;
    const get = operationOf({
      operationId,
      tag: 'query',
      summary: name,
      description: text + (isCached ? CACHED_TEXT : ''),
      parameters: parametersOf(parameters.schema),
      answers: {
        200: jsonResponse('The rows.', bodyName, isCached ? ['Age', ...ANSWER_HEADERS] : ANSWER_HEADERS),
      },
      errors: [400, 403, 503],
    });
    paths[QUERY_PATH_PREFIX + name] = { get };
    paths[QUERY_PATH_PREFIX + id] = {
      get: { ...get, operationId: `${operationId}ById`, summary: `${name}, by its id` },
    };
  }
  return paths;
}

/** Ours beyond what existing shippers send. */
const IDEMPOTENCY_KEY: OpenApiParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    `The sender's name for this body, plain or as a quoted string. A body that is sent again with the same key within ${POST_MEMORY_MS / 3_600_000} hours counts ` +
    `once and gets the same answer; of each log the newest ${POST_MEMORY_COUNT} are remembered. Another body with the same key is a 409.`,
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: IDEMPOTENCY_KEY_LENGTH_LIMIT },
};

function ingestPaths({ sourceNames }: DescribedService): Record<string, OpenApiPath> {
  const post = operationOf({
    operationId: 'postLogs',
    tag: 'ingest',
    summary: 'Take in entries',
    description:
      'Answers once the entries are on disk. The body may also be objects and arrays one behind the other. Plain or gzip, up to 16 MiB and 64 MiB unpacked. A body that is sent twice ' +
      'counts twice, unless it has the same Idempotency-Key both times. `logring import` sends parameters of its own beside these, so that a file never counts twice.',
    parameters: [
      ...parametersOf(ingestCall.schema).map((parameter) => ({
        ...parameter,
        schema: { ...parameter.schema, enum: sourceNames },
      })),
      IDEMPOTENCY_KEY,
    ],
    requestBody: {
      description: 'The entries, as JSON or one a line.',
      required: true,
      content: { [JSON_TYPE]: bodyReference('Entries'), [LINES_TYPE]: { schema: { type: 'string' } } },
    },
    answers: { 200: jsonResponse('What became of the entries.', 'Stored') },
    errors: [400, 403, 404, 409, 413, 415, 503],
  });
  return { [INGEST_PATH]: { post } };
}

function consolePaths(): Record<string, OpenApiPath> {
  const page = (sketch: Pick<Sketch, 'operationId' | 'summary' | 'parameters' | 'answers' | 'errors'>) => ({
    get: operationOf({ tag: 'console', description: '', ...sketch }),
  });
  return {
    [PROJECTS_PATH]: page({
      operationId: 'projects',
      summary: 'Projects with logs, up to a limit, the busiest of the last hours first',
      answers: { 200: jsonResponse('Of a key that is limited to projects, just these.', 'Projects') },
      errors: [503],
    }),
    [FUNCTIONS_PATH]: page({
      operationId: 'functions',
      summary: 'Functions of a project, up to a limit, most called first',
      parameters: parametersOf(functionsCall.schema),
      answers: { 200: jsonResponse('Those of the last days.', 'Functions') },
      errors: [400, 403, 503],
    }),
    [DEAD_LETTERS_PATH]: page({
      operationId: 'deadLetters',
      summary: 'What could not be used, with its reason, the newest first; without Kafka',
      parameters: parametersOf(deadLettersCall.schema),
      answers: { 200: jsonResponse('Letters, each of one or many entries.', 'DeadLetters') },
      errors: [400, 403, 404],
    }),
    [STATUS_PATH]: page({
      operationId: 'status',
      summary: 'How the service is: its log, what it holds, what it could not use',
      answers: { 200: jsonResponse('Now.', 'Status') },
      errors: [403],
    }),
  };
}

function operationPaths(): Record<string, OpenApiPath> {
  const health = (
    operationId: string,
    summary: string,
    description: string,
    { body = 'Health', headers = [] }: { body?: string; headers?: readonly HeaderName[] } = {},
  ): OpenApiPath => ({
    get: operationOf({
      operationId,
      summary,
      description,
      needsKey: false,
      answers: {
        200: jsonResponse('Yes.', body, headers),
        503: jsonResponse('No, and why.', body, headers),
      },
      errors: [],
    }),
  });
  const document = (operationId: string, summary: string, type: string, schema: JsonSchema): OpenApiPath => ({
    get: operationOf({
      operationId,
      summary,
      description: '',
      needsKey: false,
      answers: { 200: response(summary, { [type]: { schema } }) },
      errors: [],
    }),
  });
  return {
    [SNAPSHOT_PATH]: {
      post: operationOf({
        operationId: 'makeSnapshot',
        summary: 'Hold the files of the store as they are',
        description:
          'Makes hard links to the files of the store, as one commit left them, in the folder `snapshot` of the data directory, for `logring backup`; those of a snapshot before go. Takes a key of all projects and no body.',
        answers: { 200: jsonResponse('The files, with their names there.', 'Snapshot') },
        errors: [400, 403, 503],
      }),
      delete: operationOf({
        operationId: 'releaseSnapshot',
        summary: 'Let go of the files of a snapshot',
        description: 'One that is not there is no error. Takes a key of all projects and no body.',
        parameters: parametersOf(releaseCall.schema),
        answers: { 200: jsonResponse('They are gone.', 'Released') },
        errors: [400, 403, 503],
      }),
    },
    [ALARM_PATHS.gaps.list]: {
      get: operationOf({
        operationId: 'gaps',
        summary: 'Gaps in the log',
        description:
          'Records that the log lost before they were read, until somebody acknowledges them. Takes an ingest key.',
        answers: { 200: jsonResponse('Those that nobody has acknowledged.', 'Gaps') },
        errors: [403],
      }),
    },
    [ALARM_PATHS.gaps.acknowledge]: {
      post: operationOf({
        operationId: 'acknowledgeGaps',
        summary: 'Acknowledge the gaps',
        description:
          'Says that somebody has seen them: then the service is ready again. Takes an ingest key and no body.',
        answers: { 200: jsonResponse('Those that were acknowledged.', 'AcknowledgedGaps') },
        errors: [400, 403],
      }),
    },
    [ALARM_PATHS.holds.list]: {
      get: operationOf({
        operationId: 'holds',
        summary: 'Partitions on hold',
        description:
          'Partitions of which no record is applied, because their next records are not trusted. Takes an ingest key.',
        answers: { 200: jsonResponse('The holds that are not acknowledged.', 'Holds') },
        errors: [403],
      }),
    },
    [ALARM_PATHS.holds.acknowledge]: {
      post: operationOf({
        operationId: 'acknowledgeHolds',
        summary: 'Release the partitions that are on hold',
        description:
          'Lets them go on; the sentence of each says what becomes of its records. Takes an ingest key and no body.',
        answers: { 200: jsonResponse('The holds that this acknowledged.', 'AcknowledgedHolds') },
        errors: [400, 403],
      }),
    },
    '/livez': health('livez', 'Is it alive?', 'For a supervisor: start it again if not.'),
    '/readyz': health('readyz', 'Is it ready?', 'For a load balancer: whether answers lack nothing.', {
      headers: [STALE_HEADER],
    }),
    '/health': health(
      'health',
      "Is it ready, as Logflare's server says it?",
      'Beyond the contract: for probes that were made for Logflare. Says what /readyz says.',
      { body: 'LogflareHealth' },
    ),
    '/metrics': document('metrics', 'Metrics for Prometheus.', 'text/plain', { type: 'string' }),
    '/openapi.json': document('openapi', 'This document.', JSON_TYPE, { type: 'object' }),
    '/reference': document('reference', 'This document to read.', 'text/html', { type: 'string' }),
  };
}

function operationOf({ answers, errors, parameters = [], ...sketch }: Sketch): OpenApiOperation {
  const { tag = 'operation', needsKey = true, ...rest } = sketch;
  const codes: readonly ErrorCode[] = [...errors, ...(needsKey ? ([401, 429] as const) : []), 414, 500];
  return {
    ...rest,
    tags: [tag],
    security: needsKey ? WITH_KEY : [],
    parameters,
    responses: {
      ...answers,
      ...Object.fromEntries(codes.map((code) => [code, errorReference(code)])),
    },
  };
}

/** What parses the parameters says what they are. */
function parametersOf(schema: z.ZodObject): OpenApiParameter[] {
  const { properties, required = [] } = jsonSchemaOf(schema) as {
    properties: Record<string, JsonSchema & { description: string }>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: 'query',
    description,
    required: required.includes(name),
    schema: rest,
  }));
}
