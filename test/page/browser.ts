import { type Browser, chromium } from 'playwright-core';
import { hasProgram } from '../cluster/lab/namespace.ts';

export const browserUnavailable = hasProgram('chromium', '--version')
  ? undefined
  : 'needs the program chromium';

/** Starts Debian's browser, without a window. As root it cannot have its sandbox. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    chromiumSandbox: false,
    args: ['--disable-gpu', '--disable-dev-shm-usage'],
  });
}
