import assert from 'node:assert/strict';
import { API_PATH } from '../../src/inspect/api.ts';

/** Where a program with default settings serves metrics and its inspection API. */
const METRICS_ADDRESS = 'http://127.0.0.1:10249';
export const METRICS_URL = `${METRICS_ADDRESS}/metrics`;

/** Returns the sum of all samples on the metrics page that begin with one of these texts; 0 when there are none. */
export async function sumOfSamples(...beginnings: readonly string[]): Promise<number> {
  const page = await (await fetch(METRICS_URL)).text();
  const samples = page
    .split('\n')
    .filter((line) => beginnings.some((beginning) => line.startsWith(beginning)));
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

/** Returns a report of the running program's inspection API; fails when the program refuses it. */
export async function inspect<Report>(
  page: string,
  query: Readonly<Record<string, string>> = {},
): Promise<Report> {
  const response = await fetch(`${METRICS_ADDRESS}${API_PATH}${page}?${new URLSearchParams(query)}`);
  const body = await response.text();
  assert.equal(response.status, 200, body);
  return JSON.parse(body) as Report;
}
