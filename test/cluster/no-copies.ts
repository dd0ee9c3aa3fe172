import type { PeerLink } from '../../src/cluster/peer.js';

const refused = () => Promise.reject(new Error('gives no copies'));

/** Of a link to a member that gives none, nor names. */
export const NO_COPIES: Pick<PeerLink, 'copy' | 'piece' | 'release' | 'names'> = {
  names: refused,
  copy: refused,
  piece: refused,
  release: refused,
};
