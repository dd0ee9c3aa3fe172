/**
 * The OpenAPI document of this very service, from the schemas that parse its requests and the catalogue of
 * its errors.
 */

import { BODIES } from './bodies.js';
import { jsonSchemaOf } from './json-schema.js';
import type { OpenApiDocument } from './openapi-document.js';
import { type DescribedService, pathsOf, SECURITY_SCHEMES, TAGS } from './operations.js';
import { errorResponses, HEADERS } from './responses.js';

const DESCRIPTION =
  'Answers saved log queries. Parameters that are not listed are ignored; one that is given twice is an error. ' +
  'All problems of a request come in one answer. Answers to the queries are packed with gzip for those who accept it.';

/** The document, ready to be served as JSON. */
export function openApiDocument(service: DescribedService): OpenApiDocument {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Logring',
      version: service.version,
      description: DESCRIPTION,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: pathsOf(service),
    components: {
      schemas: Object.fromEntries(
        Object.entries(BODIES).map(([name, schema]) => [name, jsonSchemaOf(schema)]),
      ),
      responses: errorResponses(),
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}
