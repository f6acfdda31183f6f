import { errnoName, errnoText } from '../../native/system-error.ts';

const firstPrivateErrno = 4096;
const firstTypeErrno = 4352;

/** Names and texts of ipset's private error numbers, from 4096 on; those of set types begin at 4352. */
const privateErrors: readonly (readonly [name: string, text: string])[] = [
  ['IPSET_ERR_PRIVATE', 'internal error'],
  ['IPSET_ERR_PROTOCOL', 'the kernel does not understand the request'],
  ['IPSET_ERR_FIND_TYPE', 'the kernel does not have this type of set'],
  ['IPSET_ERR_MAX_SETS', 'too many sets'],
  ['IPSET_ERR_BUSY', 'the set is in use'],
  ['IPSET_ERR_EXIST_SETNAME2', 'a set of the second name exists'],
  ['IPSET_ERR_TYPE_MISMATCH', 'the types of the sets differ'],
  ['IPSET_ERR_EXIST', 'the entry is in the set already, or is not in it'],
  ['IPSET_ERR_INVALID_CIDR', 'invalid prefix length'],
  ['IPSET_ERR_INVALID_NETMASK', 'invalid netmask'],
  ['IPSET_ERR_INVALID_FAMILY', 'the set is of another family'],
  ['IPSET_ERR_TIMEOUT', 'the set has no timeouts'],
  ['IPSET_ERR_REFERENCED', 'rules or sets refer to the set'],
  ['IPSET_ERR_IPADDR_IPV4', 'an IPv4 address is expected'],
  ['IPSET_ERR_IPADDR_IPV6', 'an IPv6 address is expected'],
];
const hashErrors: readonly (readonly [name: string, text: string])[] = [
  ['IPSET_ERR_HASH_FULL', 'the set is full'],
  ['IPSET_ERR_HASH_ELEM', 'the entry cannot be in this set'],
  ['IPSET_ERR_INVALID_PROTO', 'invalid protocol'],
  ['IPSET_ERR_MISSING_PROTO', 'missing protocol'],
];
const bitmapErrors: readonly (readonly [name: string, text: string])[] = [
  ['IPSET_ERR_BITMAP_RANGE', 'the port is outside of the range of the set'],
  ['IPSET_ERR_BITMAP_RANGE_SIZE', 'the range of the set is too large'],
];

/** A request that ipset refused. */
export class IpsetError extends Error {
  readonly code = 'ERR_IPSET';
  /** Name of the error number, such as `ENOENT` or `IPSET_ERR_BUSY`. */
  readonly errno: string;

  constructor(action: string, errno: string, text: string) {
    super(`${action}: ${errno} (${text})`);
    this.name = 'IpsetError';
    this.errno = errno;
  }

  /** Makes an error from the kernel's number; the meaning of some numbers depends on the set type. */
  static of(action: string, errno: number, type?: string): IpsetError {
    const [name, text] = meaning(errno, type) ?? [errnoName(errno), errnoText(errno)];
    return new IpsetError(action, name, text);
  }
}

export function isIpsetError(error: unknown, errno: string): error is IpsetError {
  return error instanceof IpsetError && error.errno === errno;
}

function meaning(errno: number, type: string | undefined): readonly [string, string] | undefined {
  if (errno < firstTypeErrno) return privateErrors[errno - firstPrivateErrno];
  return (type?.startsWith('bitmap:') ? bitmapErrors : hashErrors)[errno - firstTypeErrno];
}
