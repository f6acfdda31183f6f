import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ResourceName } from '../../../src/model/objects.ts';

/** An answer of a real kube-apiserver, asked for twice. */
export interface RecordedAnswer {
  readonly name: string;
  readonly resource: ResourceName;
  /** With the query. */
  readonly path: string;
  readonly json: RecordedBody;
  /** The body is in base64. Absent if the server answers in JSON only. */
  readonly protobuf?: RecordedBody;
}

export interface RecordedBody {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

const file = resolve(import.meta.dirname, '../../vectors/api/answers.json');

export const recordedAnswers: readonly RecordedAnswer[] = JSON.parse(readFileSync(file, 'utf8')).answers;
