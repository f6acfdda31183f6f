/**
 * node:http, without what importing it drags in. An `import` of the module reads all its exports, among them lazy
 * ones for WebSocket that load Node's whole fetch implementation: 7 MB resident and 10 ms that a proxy has no use for.
 */
export const http = process.getBuiltinModule('node:http');
