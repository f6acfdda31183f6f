/** Whether this machine stores the low byte first: what DataView needs to read and write the kernel's integers. */
export const hostLittleEndian: boolean = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
