/** What HTTP counts by itself: clients that were cut off, the certificate that it shows, its files of keys. */

import { US_PER_SECOND } from '../../engine/time.js';
import type { AnswersInFlight } from '../http/server/answers-in-flight.js';
import type { TlsFiles } from '../http/server/tls-files.js';
import type { KeyFile } from '../service/key-rings.js';
import type { Readings } from './readings.js';

export interface HttpReadingsPorts {
  readonly inFlight: AnswersInFlight;
  /** null without a certificate from files. */
  readonly tlsFiles: TlsFiles | null;
  readonly keyFiles: readonly KeyFile[];
}

export function readHttp(readings: Readings, { inFlight, tlsFiles, keyFiles }: HttpReadingsPorts): void {
  readings.one(
    'logring_http_slow_clients_total',
    'Connections closed because their client took its answer too slowly',
    () => inFlight.cutOffCount,
  );
  const ofTls = (name: string, help: string, pick: (files: TlsFiles) => number) =>
    readings.one(name, help, () => (tlsFiles === null ? null : pick(tlsFiles)));
  ofTls(
    'logring_tls_certificate_expiry_timestamp_seconds',
    'When the certificate in use ends, where it comes from a file',
    ({ expiresUs }) => expiresUs() / US_PER_SECOND,
  );
  ofTls('logring_tls_renewals_total', 'Certificates taken over from changed files', ({ watched }) => {
    return watched.renewalCount;
  });
  ofTls(
    'logring_tls_renewal_failures_total',
    'Changed files of certificate and key that could not be used; the ones before stay in use',
    ({ watched }) => watched.failureCount,
  );
  ofTls(
    'logring_tls_files_refused',
    '1 while the files of certificate and key hold what cannot be used',
    ({ watched }) => (watched.isRefused ? 1 : 0),
  );
  const ofKeys = (name: string, help: string, pick: (watched: KeyFile['watched']) => number) =>
    readings.read(name, help, ['setting'], (add) => {
      for (const { setting, watched } of keyFiles) add({ setting }, pick(watched));
    });
  ofKeys('logring_key_renewals_total', 'Changed files of keys that were taken over', (watched) => {
    return watched.renewalCount;
  });
  ofKeys(
    'logring_key_renewal_failures_total',
    'Changed files of keys that could not be used; the keys before stay in use',
    ({ failureCount }) => failureCount,
  );
  ofKeys('logring_key_file_refused', '1 while a file of keys holds what cannot be used', ({ isRefused }) =>
    isRefused ? 1 : 0,
  );
}
