package io.github.wordveil;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on S3 for any number of drivers: S3 itself refuses to create a commit's object where there is one.
 *
 * <p>It takes S3A of Hadoop 3.4.2 or newer, and a store that honours {@code If-None-Match: *}.
 */
public class ConditionalLogStore extends HadoopFileSystemLogStore {

    // A file system that does not know the option refuses it, because it is a "must".
    private static final String IF_ABSENT = "fs.option.create.conditional.overwrite";

    public ConditionalLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf) throws IOException {
        FileSystem files = path.getFileSystem(conf);
        // In memory first: if an action cannot be made, no part of the commit may be written.
        StringBuilder lines = new StringBuilder();
        actions.forEachRemaining(action -> lines.append(action).append('\n'));
        byte[] commit = lines.toString().getBytes(StandardCharsets.UTF_8);
        if (overwrite) {
            upload(files.create(path, true), commit);
            return;
        }
        FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path);
        builder.must(IF_ABSENT, true);
        try {
            upload(builder.build(), commit);
        } catch (IOException error) {
            // Clients repeat a request whose answer was lost, and are then refused by their own object. Two commits are
            // never equal: each has a random identifier in it.
            if (!Arrays.equals(read(files, path, error), commit)) {
                FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
                taken.initCause(error);
                throw taken;
            }
        }
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) {
        return false;
    }

    private static void upload(FSDataOutputStream stream, byte[] commit) throws IOException {
        try (stream) {
            stream.write(commit);
        }
    }

    /** What is there. If nothing is, the commit failed for another reason, which is thrown. */
    private static byte[] read(FileSystem files, Path path, IOException reason) throws IOException {
        try (FSDataInputStream stream = files.open(path)) {
            return stream.readAllBytes();
        } catch (FileNotFoundException missing) {
            throw reason;
        }
    }
}
