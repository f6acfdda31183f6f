import { type Handler, type Routes, textHeaders } from '../http/router.ts';
import { reply } from '../lib/http.ts';

const maxLevel = 2 ** 31 - 1;

const index = `<html>
<head><title>/debug/flags/</title></head>
<body>
<p>Flags that can be set while the program runs:</p>
<table><tr><td><a href="/debug/flags/v">v</a></td><td>log verbosity; PUT a number</td></tr></table>
</body>
</html>
`;

/** `/debug/flags/v` sets the log verbosity; everything else below `/debug/flags` lists what can be set. */
export function debugFlagRoutes(setVerbosity: (level: number) => void): Routes {
  const showIndex: Handler = (_request, response) =>
    reply(response, 200, { ...textHeaders, 'Content-Type': 'text/html; charset=utf-8' }, index);
  return {
    '/debug/flags': showIndex,
    '/debug/flags/*': showIndex,
    '/debug/flags/v': async (request, response) => {
      const plain = { ...textHeaders, 'Content-Type': 'text/plain' };
      if (request.method !== 'PUT') return reply(response, 406, plain, 'unsupported http method');
      const text = (await request.body()).trim();
      const level = Number(text);
      if (!/^\d+$/.test(text) || level > maxLevel) {
        const message = `failed set klog.logging.verbosity ${JSON.stringify(text)}: not a number from 0 to ${maxLevel}`;
        return reply(response, 400, plain, message);
      }
      setVerbosity(level);
      reply(response, 200, plain, `successfully set klog.logging.verbosity to ${level}`);
    },
  };
}
