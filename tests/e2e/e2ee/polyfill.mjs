// matrix-js-sdk is written for Node 22. This is all that it misses in Node 20.
Promise.withResolvers ??= function () {
    let resolve, reject;
    const promise = new Promise((yes, no) => ([resolve, reject] = [yes, no]));
    return { promise, resolve, reject };
};

// Whatever a library prints must not get between the lines of the protocol.
for (const level of ["log", "info", "debug", "warn"]) console[level] = console.error;
