import fc from 'fast-check';

/** The bytes of a netlink message with up to six of them changed, behind its header of 16 bytes. */
export function damaged(message: Uint8Array): fc.Arbitrary<Uint8Array> {
  const change = fc.tuple(fc.integer({ min: 16, max: message.length - 1 }), fc.nat(255));
  return fc.array(change, { maxLength: 6 }).map((changes) => {
    const bytes = message.slice();
    for (const [at, value] of changes) bytes[at] = value;
    return bytes;
  });
}
