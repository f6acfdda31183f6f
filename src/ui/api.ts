import { API_PATH, type ListReport } from '../inspect/api.ts';

/** The proxy, or the server of this page, did not give the answer that was asked for. */
export class AskError extends Error {
  /** 0 when there was no answer at all. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  /** The proxy did not answer, or the server of this page did not. */
  get isSilence(): boolean {
    return this.status === 0 || this.status === 502;
  }
}

export type Query = Readonly<Record<string, string>>;

/** The address of an answer of the inspection API. */
export function apiAddress(page: string, query: Query = {}): string {
  const text = new URLSearchParams(query).toString();
  return `${API_PATH}${page}${text === '' ? '' : `?${text}`}`;
}

/** Asks the inspection API. Rejects with `AskError`. */
export async function ask<T>(page: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await answerOf(apiAddress(page, query), signal);
  return response.json();
}

/** Items are parsed in pieces of about this many characters: the page goes on meanwhile. */
const pieceLength = 256 * 1024;

/** Asks for a list that may be long. The proxy writes one item per line. */
export async function askList<Item>(
  page: string,
  query: Query = {},
  signal?: AbortSignal,
): Promise<ListReport<string, Item>> {
  const response = await answerOf(apiAddress(page, query), signal);
  const items: Item[] = [];
  let head = '';
  let rest = '';
  const take = (isLast: boolean) => {
    const end = isLast ? rest.length : rest.lastIndexOf('\n') + 1;
    const lines = rest.slice(0, end).split('\n').filter(Boolean);
    rest = rest.slice(end);
    if (head === '') head = lines.shift() ?? '';
    const text = lines.join('').replace(isLast ? /\]\}$/ : /,$/, '');
    if (text === '') return;
    const piece: Item[] = JSON.parse(`[${text}]`);
    items.push(...piece);
  };
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    rest += read.value;
    if (rest.length >= pieceLength) take(false);
  }
  take(true);
  return { ...JSON.parse(head.endsWith('[') ? `${head}]}` : head), items };
}

/** Asks the server of this page. Rejects with `AskError` when the answer is not 200. */
export async function answerOf(
  address: string,
  signal?: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(address, { headers, ...(signal && { signal }) }).catch((error: Error) => {
    throw signal?.aborted ? error : new AskError(0, 'kube-proxyctl ui has ended');
  });
  if (response.ok) return response;
  throw new AskError(response.status, (await response.text()).trim());
}
