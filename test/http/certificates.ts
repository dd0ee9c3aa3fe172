/** Self-signed certificates for tests, as files, made by openssl. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TlsPaths } from '../../src/http/server/tls-identity.js';

/** `DIR/NAME.crt` and `DIR/NAME.key`, for 127.0.0.1, the name as common name. */
export function makeCertificate(directory: string, name: string, days = 30): TlsPaths {
  const paths = { certificate: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) };
  const algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', paths.key, '-out', paths.certificate];
  execFileSync('openssl', ['req', '-x509', ...algorithm, ...subject, ...files, '-days', String(days)], {
    stdio: 'pipe',
  });
  return paths;
}

export function textOfFile(path: string): string {
  return readFileSync(path, 'utf8').trim();
}
