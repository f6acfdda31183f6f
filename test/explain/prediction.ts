import type { ExplanationReport } from '../../src/inspect/api.ts';
import { inspect } from '../program/served-pages.ts';
import type { TestPacket } from './packets.ts';

/** Returns what the running program says about a packet, by its plans and by what it reads from the kernel. */
export function predict({ source, destination, port, transport }: TestPacket): Promise<ExplanationReport> {
  return inspect('explain', { source, destination, port: String(port), protocol: transport });
}
