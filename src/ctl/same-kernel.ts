import { placeOfProcess } from '../app/node-report.ts';
import { API_PATH, type NodeReport } from '../inspect/api.ts';
import type { Pages } from './source.ts';

/** Throws when a proxy answers that runs elsewhere: the rules here are not its rules. */
export async function requireSameKernel(pages: Pages): Promise<void> {
  let node: Partial<NodeReport>;
  try {
    node = JSON.parse(await textOf(pages, 'node')) as NodeReport;
  } catch (error) {
    if (pages.onNode !== undefined) throw error;
    return;
  }
  const here = placeOfProcess();
  if (node.bootId !== here.bootId || node.networkNamespace !== here.networkNamespace) {
    throw new Error(`the proxy runs on node ${node.nodeName}, in another machine or network namespace`);
  }
}

/** The whole text of a page of the inspection API. */
export async function textOf(pages: Pages, name: string): Promise<string> {
  let text = '';
  for await (const piece of await pages.page(API_PATH + name)) text += piece;
  return text;
}
