import { writeYaml } from '../config/write-yaml.ts';
import { type Handler, replyError, textHeaders } from '../http/router.ts';
import { type Replier, reply } from '../lib/http.ts';
import { type MediaRange, parseAccept } from './accept.ts';

/** Separators of name and value. One is drawn at random, as upstream does, so that no program relies on the text. */
const separators = [':', ': ', '=', ' '] as const;
type Separator = (typeof separators)[number];

const group = 'config.k8s.io';
const versions = ['v1beta1', 'v1alpha1'] as const;
type Version = (typeof versions)[number];

/** A page that is text or, if the client asks for a kind and version, an object. */
interface ZPage {
  readonly kind: 'Flagz' | 'Statusz';
  text(separator: Separator): string;
  /** Returns the object's fields except kind, apiVersion and metadata. */
  fields(): Readonly<Record<string, unknown>>;
}

const component = 'kube-proxy';
const warning =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.';

function drawSeparator(random: () => number): Separator {
  return separators[Math.floor(random() * separators.length)] ?? '=';
}

/** `/flagz`: every flag with its value, sorted by name. */
export function flagzHandler(flags: () => ReadonlyMap<string, string>, random: () => number): Handler {
  const separator = drawSeparator(random);
  const sorted = () => [...flags()].sort(([a], [b]) => (a < b ? -1 : 1));
  const page: ZPage = {
    kind: 'Flagz',
    text: (between) => {
      const lines = sorted().map(([name, value]) => `${name}${between}${value}\n`);
      return `\n${component} flagz\n${warning}\n${lines.join('')}`;
    },
    fields: () => ({ flags: Object.fromEntries(sorted()) }),
  };
  return (request, response) => replyPage(response, request.header('accept'), page, separator);
}

export interface Status {
  /** Milliseconds since the epoch. */
  readonly startTime: number;
  readonly uptimeSeconds: number;
  readonly goVersion: string;
  readonly binaryVersion: string;
  readonly emulationVersion: string;
  readonly paths: readonly string[];
}

/** `/statusz`: start time, version and pages. */
export function statuszHandler(status: () => Status, random: () => number): Handler {
  const page: ZPage = {
    kind: 'Statusz',
    text: (separator) => `\n${component} statusz\n${warning}\n\n${statusLines(status(), separator)}`,
    fields: () => {
      const { startTime, ...rest } = status();
      return { startTime: new Date(startTime).toISOString().replace(/\.\d+Z$/, 'Z'), ...rest };
    },
  };
  return (request, response) => replyPage(response, request.header('accept'), page, drawSeparator(random));
}

function statusLines(status: Status, separator: Separator): string {
  const { uptimeSeconds: up } = status;
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const lines: [string, string][] = [
    ['Started', unixDate(status.startTime)],
    ['Up', `${Math.floor(up / 3600)} hr ${two((up % 3600) / 60)} min ${two(up % 60)} sec`],
    ['Go version', status.goVersion],
    ['Binary version', status.binaryVersion],
    ['Emulation version', status.emulationVersion],
    ['Paths', status.paths.join(' ')],
  ];
  return lines.map(([name, value]) => `${name}${separator} ${value}\n`).join('');
}

/** `Sun Nov 15 03:56:49 UTC 2026` */
function unixDate(ms: number): string {
  const [week = '', day = '', month = '', year = '', time = ''] = new Date(ms).toUTCString().split(/,? /);
  return `${week} ${month} ${day.replace(/^0/, ' ')} ${time} UTC ${year}`;
}

function replyPage(response: Replier, accept: string | undefined, page: ZPage, separator: Separator): void {
  for (const range of accept ? parseAccept(accept) : [everything]) {
    if (isText(range)) {
      reply(response, 200, { 'Content-Type': textHeaders['Content-Type'] }, page.text(separator));
      return;
    }
    const version = requestedVersion(range, page.kind);
    if (version) {
      replyObject(response, range.type, page, version);
      return;
    }
  }
  const offers = versions.map((v) => `application/json;as=${page.kind};v=${v};g=${group}`);
  replyError(response, 406, `only these media types are served: ${['text/plain', ...offers].join(', ')}`);
}

const everything: MediaRange = { type: '*/*', params: new Map(), quality: 1 };

function isText({ type, params }: MediaRange): boolean {
  return ['*/*', 'text/*', 'text/plain'].includes(type) && !params.has('as');
}

/** Returns the version of the object that a media range asks for; undefined if it is not one of `versions`. */
function requestedVersion({ type, params }: MediaRange, kind: string): Version | undefined {
  const known = type === 'application/json' || type === 'application/yaml';
  if (!known || params.get('as') !== kind || params.get('g') !== group) return undefined;
  return versions.find((version) => version === params.get('v'));
}

function replyObject(response: Replier, type: string, page: ZPage, version: Version): void {
  const object = {
    kind: page.kind,
    apiVersion: `${group}/${version}`,
    metadata: { name: component },
    ...page.fields(),
  };
  const json = type === 'application/json';
  const body = json ? `${JSON.stringify(object)}\n` : writeYaml(JSON.parse(JSON.stringify(object)));
  reply(response, 200, { 'Content-Type': type, ...deprecation(page.kind, version) }, body);
}

function deprecation(kind: string, version: Version): Record<string, string> {
  if (version !== 'v1alpha1') return {};
  const text = `${group}/${version} ${kind} is deprecated; use ${group}/${versions[0]} ${kind}`;
  return { Warning: `299 - "${text}"` };
}
