import { AttributeMap } from './attribute-map.ts';
import { NetlinkFormatError, type NetlinkMessage } from './reader.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';
import type { MessageWriter } from './writer.ts';

/** Generic netlink (linux/genetlink.h): families with a name, whose number the kernel assigns when it loads them. */

const GENL_ID_CTRL = 16;
const CTRL_CMD_NEWFAMILY = 1;
const CTRL_CMD_GETFAMILY = 3;
const CTRL_VERSION = 2;
const CTRL_ATTR_FAMILY_ID = 1;
const CTRL_ATTR_FAMILY_NAME = 2;

/** struct genlmsghdr: command, version, two reserved bytes. */
export const genericHeaderLength = 4;

/** Writes the header that every generic message begins with. */
export function writeGenericHeader(writer: MessageWriter, command: number, version: number): void {
  writer.raw(Uint8Array.of(command, version, 0, 0));
}

/** The command of a generic message. Throws NetlinkFormatError when the message has no header. */
export function genericCommand(message: NetlinkMessage): number {
  const command = message.firstByte;
  if (command === undefined) throw new NetlinkFormatError('generic netlink message without a header');
  return command;
}

/**
 * The message type of a family; undefined when the kernel does not have the family. The request makes the kernel load
 * the family's module if there is one.
 */
export function resolveFamily(socket: NetlinkSocket, name: string): Promise<number | undefined> {
  const request: NetlinkRequest = {
    type: GENL_ID_CTRL,
    name: `finding generic netlink family ${name}`,
    write(writer) {
      writeGenericHeader(writer, CTRL_CMD_GETFAMILY, CTRL_VERSION);
      writer.string(CTRL_ATTR_FAMILY_NAME, name);
    },
  };
  return socket.find(request, 'ENOENT', (message) => {
    if (message.type !== GENL_ID_CTRL || genericCommand(message) !== CTRL_CMD_NEWFAMILY) return undefined;
    const id = AttributeMap.of(message, genericHeaderLength).u16(CTRL_ATTR_FAMILY_ID);
    if (id === undefined) throw new NetlinkFormatError(`the kernel gave family ${name} no number`);
    return id;
  });
}
