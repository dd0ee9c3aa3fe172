/** What HTTPS shows to its clients: a certificate with its chain, and the key to it, checked together. */

import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

export interface TlsPaths {
  readonly certificate: string;
  readonly key: string;
}

export interface TlsIdentity {
  /** PEM, the chain behind the certificate. */
  readonly certificate: string;
  /** PEM. */
  readonly key: string;
  /** The files that they come from; null where they came as values. */
  readonly paths: TlsPaths | null;
  readonly expiresUs: number;
}

/** Certificate and key can't be used: a sentence for the operator. */
export class TlsError extends Error {
  override name = 'TlsError';
}

/** Throws a TlsError. A certificate that has expired is no error: a client may trust it all the same. */
export function checkedIdentity(certificate: string, key: string, paths: TlsPaths | null): TlsIdentity {
  let first: X509Certificate;
  try {
    first = new X509Certificate(certificate);
  } catch (error) {
    throw new TlsError(`the certificate is not PEM, or is damaged: ${(error as Error).message}`);
  }
  try {
    createSecureContext({ cert: certificate, key });
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    throw new TlsError(
      code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH'
        ? 'the key is not that of the certificate'
        : `the key can't be used (one with a passphrase can't): ${message}`,
    );
  }
  return { certificate, key, paths, expiresUs: Date.parse(first.validTo) * 1000 };
}

/** As Node's servers take it. */
export function tlsOptions({ certificate, key }: TlsIdentity) {
  return { cert: certificate, key, minVersion: 'TLSv1.2' } as const;
}
