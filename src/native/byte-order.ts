/** Whether this machine is little-endian: the argument of DataView for integers of the kernel. */
export const hostLittleEndian: boolean = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
