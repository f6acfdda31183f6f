import assert from 'node:assert/strict';
import { API_PATH, type ExplanationReport } from '../../src/inspect/api.ts';
import type { TestPacket } from './packets.ts';

const METRICS_ADDRESS = 'http://127.0.0.1:10249';

/** What the running program says of a packet, by its plans and by what it reads from the kernel. */
export async function foretell(packet: TestPacket): Promise<ExplanationReport> {
  const { source, destination, port, transport } = packet;
  const query = new URLSearchParams({ source, destination, port: String(port), protocol: transport });
  const response = await fetch(`${METRICS_ADDRESS}${API_PATH}explain?${query}`);
  const body = await response.text();
  assert.equal(response.status, 200, body);
  return JSON.parse(body) as ExplanationReport;
}
