# The program as an image: the worker, unless another command is given. It needs DATABASE_URL, since the embedded database is left out.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# The lock file names this folder, although nothing of it is installed.
COPY tools/node-runtime/package.json tools/node-runtime/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tools/build.ts tools/client-bundle.ts tools/less-of-packages.ts tools/
COPY migrations migrations
COPY src src
RUN node tools/build.ts
# Makes the files readable for any user, whatever umask the checkout had.
RUN chmod -R go=rX package.json dist

FROM ${NODE_IMAGE}

LABEL org.opencontainers.image.title="usage-export" \
  org.opencontainers.image.description="Nightly usage of a speech service in Postgres, and API keys that stay young."

COPY --from=build /app/package.json /app/
COPY --from=build /app/dist /app/dist
# Puts the command on the path, and creates the folder to which jobs.config.json delivers keys.
RUN ln -s /app/dist/usage-export.cjs /usr/local/bin/usage-export && install -d -o 1000 -g 1000 -m 700 /config/secrets

# Where jobs.config.json is looked for, apart from the program, so that a whole folder can be mounted.
WORKDIR /config
# A number: Kubernetes can't tell whether a name is root.
USER 1000:1000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["usage-export", "health"]
ENTRYPOINT ["usage-export"]
CMD ["start"]
